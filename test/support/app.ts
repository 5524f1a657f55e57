import { randomBytes } from 'node:crypto';

export const ADMIN_KEY = 'admin-key-of-the-notebridge-tests';
export const WEBHOOK_SECRET = 'webhook-secret-of-the-tests';

/** The default settings of a service in tests. */
export function testSettings(databaseUrl: string): Record<string, string> {
  return {
    PLATFORM_BASE_URL: 'http://127.0.0.1:1',
    PLATFORM_API_KEY: 'platform-key',
    PLATFORM_WEBHOOK_SECRET: WEBHOOK_SECRET,
    ADMIN_API_KEY: ADMIN_KEY,
    DATABASE_URL: databaseUrl,
    DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    FINGERPRINT_KEYS: `f1:${Buffer.alloc(32, 8).toString('base64')}`,
    AUDIT_KEYS: `a1:${Buffer.alloc(32, 9).toString('base64')}`,
    // Tests send many concurrent requests with one key.
    KEY_REQUESTS_PER_SECOND: '100000',
    QUEUE_PREFIX: `test-${randomBytes(6).toString('hex')}`,
  };
}
