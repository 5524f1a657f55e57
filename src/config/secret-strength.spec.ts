import { createHash } from 'node:crypto';
import { isStrongSecret } from './secret-strength.js';

const digest = (i: number) => createHash('sha256').update(String(i)).digest();

test.each(['hex', 'base64', 'base64url'] as const)('random secrets in %s are strong', (encoding) => {
  for (let i = 0; i < 2_000; i++) {
    expect(isStrongSecret(digest(i).subarray(0, 24).toString(encoding).slice(0, 48).padEnd(32, 'x'))).toBe(true);
    expect(isStrongSecret(digest(i).toString(encoding).slice(0, 32))).toBe(true);
  }
});

test.each([
  '',
  'short-and-otherwise-good-0Xq',
  'a'.repeat(64),
  'ab'.repeat(32),
  'password'.repeat(8),
  'correct-horse '.repeat(4),
  '0123456789'.repeat(5),
  '0123456789abcdef'.repeat(4),
  'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ',
  'zyxwvutsrqponmlkjihgfedcba9876543210',
])('%j is weak', (secret) => {
  expect(isStrongSecret(secret)).toBe(false);
});
