import { backoffMs } from '../../queue/backend/backoff.js';

/** Bounds of the pause after a 429 without Retry-After, in milliseconds. */
const BOUNDS = { baseMs: 1_000, maxMs: 60_000 };

/**
 * How long every worker pauses after a 429.
 *
 * @param retryAfterMs what the platform asked for, if it did
 * @param failures 429s in a row, this one included; calls that were already under way when the pause began don't count
 * @param fraction a random number in [0, 1)
 * @returns milliseconds
 */
export function pauseMs(retryAfterMs: number | undefined, failures: number, fraction: number): number {
  if (retryAfterMs !== undefined) return Math.max(0, retryAfterMs);
  return backoffMs(failures, fraction, BOUNDS);
}
