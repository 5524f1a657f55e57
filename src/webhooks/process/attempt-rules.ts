import { type BackoffBounds, backoffMs } from '../../queue/backend/backoff.js';

/** Failed attempts after which a delivery is dead; with the delays below that is after about an hour. */
export const MOST_ATTEMPTS = 12;

const BOUNDS: BackoffBounds = { baseMs: 1_000, maxMs: 30 * 60_000 };

/** Milliseconds until a delivery is looked at again whose data key is missing: an operator has to bring it. */
export const KEY_WAIT_MS = 30_000;

/**
 * What follows from a failed attempt.
 *
 * @param attempts failed ones, this one included
 * @param fraction a random number in [0, 1)
 */
export function afterFailure(
  attempts: number,
  fraction: number,
): { state: 'failed' | 'dead'; retryInMs: number | null } {
  if (attempts >= MOST_ATTEMPTS) return { state: 'dead', retryInMs: null };
  return { state: 'failed', retryInMs: backoffMs(attempts, fraction, BOUNDS) };
}

/** A code for why a handler failed: SQLSTATE, problem type or kind of error; never a message, which may quote a value. */
export function failureCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if ('code' in error && typeof error.code === 'string' && /^[A-Z0-9_]{2,40}$/.test(error.code)) {
    return /^[0-9A-Z]{5}$/.test(error.code) ? `database-${error.code}` : error.code;
  }
  return /^[A-Za-z]{1,60}$/.test(error.name) ? error.name : 'unknown';
}
