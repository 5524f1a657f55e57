import { createHash } from 'node:crypto';
import { bearerToken, newApiKey } from './key-format.js';

test('of a key only its hash and its first characters are kept', () => {
  const { key, prefix, hash } = newApiKey(Buffer.alloc(32, 0xab));
  expect(key).toMatch(/^nb_[A-Za-z0-9_-]{43}$/);
  expect(key.startsWith(prefix)).toBe(true);
  expect(prefix).toHaveLength(9);
  expect(hash).toEqual(createHash('sha256').update(key).digest());
});

test.each([
  ['Bearer abc', 'abc'],
  ['bearer   abc ', 'abc'],
  ['BEARER nb_x-y_z', 'nb_x-y_z'],
])('%j carries a token', (header, token) => {
  expect(bearerToken(header)).toBe(token);
});

test.each([
  undefined,
  '',
  'abc',
  'Bearer',
  'Bearer ',
  'Basic abc',
  'Bearer a b',
  `Bearer ${'x'.repeat(513)}`,
  'Bearer \u00e9',
])('%j carries none', (header) => {
  expect(bearerToken(header)).toBeUndefined();
});
