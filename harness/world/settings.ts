import { DEFAULT_API_KEY } from '../../simulator/app.js';
import { withOptions } from './time.js';

export const ADMIN_KEY = 'admin-key-of-the-notebridge-tests';
export const WEBHOOK_SECRET = 'webhook-secret-of-the-tests';
export const DATA_KEYS = `k1:${Buffer.alloc(32, 7).toString('base64')}`;
export const FINGERPRINT_KEYS = `f1:${Buffer.alloc(32, 8).toString('base64')}`;
export const AUDIT_KEYS = `a1:${Buffer.alloc(32, 9).toString('base64')}`;

/** The service's usual settings in a world. */
export const settingsFor = (platformUrl: string, databaseUrl: string) => ({
  PLATFORM_BASE_URL: platformUrl,
  PLATFORM_API_KEY: DEFAULT_API_KEY,
  PLATFORM_WEBHOOK_SECRET: WEBHOOK_SECRET,
  PLATFORM_CONTRACT: 'simulator/contract.json',
  PLATFORM_TIMEOUT_SECONDS: '20',
  ADMIN_API_KEY: ADMIN_KEY,
  USER_MANAGEMENT_CALLS_PER_MINUTE: '6000',
  // Tests send many concurrent requests with one key.
  KEY_REQUESTS_PER_SECOND: '100000',
  // The service sets its own search path, in which the world's time would be missing.
  DATABASE_URL: withOptions(databaseUrl, '-c search_path=public'),
  DATA_KEYS,
  FINGERPRINT_KEYS,
  AUDIT_KEYS,
});
