import { createHash } from 'node:crypto';
import { DEFAULT_API_KEY } from '../../simulator/app.js';

/** The simulator's API key as the log of calls knows it (`RateLimiterRepository`). */
export const PLATFORM_ACCOUNT = createHash('sha256').update(DEFAULT_API_KEY).digest('hex').slice(0, 16);
