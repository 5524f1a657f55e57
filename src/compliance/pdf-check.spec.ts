import { looksLikePdf } from './pdf-form.js';

it.each([
  ['a file that starts with the header', Buffer.from('%PDF-1.7\n'), true],
  ['a preamble before the header', Buffer.concat([Buffer.alloc(1_019, ' '), Buffer.from('%PDF-1.4')]), true],
  ['a header after the first 1024 bytes', Buffer.concat([Buffer.alloc(1_020, ' '), Buffer.from('%PDF-1.4')]), false],
  ['a truncated header', Buffer.from('%PDF'), false],
  ['a header in lower case', Buffer.from('%pdf-1.7'), false],
  ['an image', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), false],
  ['an empty file', Buffer.alloc(0), false],
])('looksLikePdf: %s', (_name, head, expected) => {
  expect(looksLikePdf(head)).toBe(expected);
});
