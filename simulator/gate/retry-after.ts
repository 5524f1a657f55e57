import type { Settings } from '../settings.js';

/**
 * The Retry-After header of a 429 in the form asked for (RFC 9110, 10.2.3), rounded up so that who waits exactly so
 * long is not refused again.
 */
export function retryAfterHeader(form: Settings['retryAfter'], waitMs: number, nowMs: number): Record<string, string> {
  if (form === 'absent') return {};
  if (form === 'seconds') return { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1_000))) };
  return { 'retry-after': new Date(Math.ceil((nowMs + waitMs) / 1_000) * 1_000).toUTCString() };
}
