import { createHash } from 'node:crypto';
import { isStrongSecret, weakSecretWarnings } from './secret-strength.js';

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

describe('the warnings about secrets of the platform', () => {
  const strong = digest(1).toString('hex');
  const weak = digest(2).toString('hex').slice(0, 22);
  const warned = (key: string, secrets: string[], PLATFORM_BASE_URL = 'https://platform.example') =>
    weakSecretWarnings({ PLATFORM_BASE_URL, PLATFORM_API_KEY: key, PLATFORM_WEBHOOK_SECRET: secrets });

  test('name each setting with a short secret, and no secret', () => {
    expect(warned(strong, [strong])).toEqual([]);
    expect(warned(strong, [strong, weak])).toEqual([
      'PLATFORM_WEBHOOK_SECRET is short or repetitive. Ask the platform for at least 32 random characters.',
    ]);
    expect(warned(weak, [strong])).toEqual([expect.stringMatching(/^PLATFORM_API_KEY is short/)]);
    expect(warned(weak, [weak]).join()).not.toContain(weak);
  });

  test('are none for a platform on this machine', () => {
    expect(warned(weak, [weak], 'http://127.0.0.1:4010')).toEqual([]);
  });
});
