import { createHash } from 'node:crypto';
import { weakSecretWarnings } from './weak-secrets.js';

const digest = (i: number) => createHash('sha256').update(String(i)).digest();

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
