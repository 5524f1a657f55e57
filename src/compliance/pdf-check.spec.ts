import { looksLikePdf } from './pdf-form.js';

it.each([
  ['begins with its mark', Buffer.from('%PDF-1.7\n'), true],
  ['has a preamble before its mark', Buffer.concat([Buffer.alloc(1_019, ' '), Buffer.from('%PDF-1.4')]), true],
  [
    'has its mark behind the first 1024 bytes',
    Buffer.concat([Buffer.alloc(1_020, ' '), Buffer.from('%PDF-1.4')]),
    false,
  ],
  ['ends within its mark', Buffer.from('%PDF'), false],
  ['has a mark in another case', Buffer.from('%pdf-1.7'), false],
  ['is an image', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), false],
  ['is empty', Buffer.alloc(0), false],
])('a file that %s', (_what, head, expected) => {
  expect(looksLikePdf(head)).toBe(expected);
});
