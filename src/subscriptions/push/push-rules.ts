import { type CodeOf, codesOf, WORDS } from '../../words/words.js';

/** Why nothing is pushed to an endpoint. */
export const PAUSE_REASONS = codesOf(WORDS.pauseReason);
export type PauseReason = CodeOf<'pauseReason'>;

/** Maximum subscriptions. Each has a slot, so that a slow endpoint delays no other. */
export const MAX_SUBSCRIPTIONS = 20;

/** Seconds until the next attempt, by the number of failures; the last value repeats. */
const BACKOFF_SECONDS = [5, 30, 120, 600, 3_600] as const;

/** Time without a success after which a subscription is paused. */
const PAUSE_AFTER_MS = 5 * 86_400_000;

/**
 * Failures without which it is not paused: about 120 attempts fit in that time. There are fewer if sending was held or no
 * worker ran, which is no fault of the endpoint.
 */
const PAUSE_AFTER_FAILURES = 100;

/** The status of an endpoint that no longer wants events (RFC 9110, section 15.5.11). */
const GONE = 410;

/** A failed attempt, and those before it. */
interface Failure {
  /** Consecutive failures before this one. */
  failures: number;
  /** Time of the first of them; null if this is the first. */
  failingSince: Date | null;
  /** The HTTP status; null without an answer. */
  status: number | null;
  /** The wait that Retry-After asks for. */
  retryAfterMs?: number | undefined;
  now: Date;
}

/** The consequence of a failed attempt: a pause, or the milliseconds until the next attempt. */
type AfterFailure = { paused: PauseReason } | { paused: null; waitMs: number };

/** Decides what follows from a failed attempt. `Retry-After` lengthens the wait, and never shortens it. */
export function afterFailure({ failures, failingSince, status, retryAfterMs = 0, now }: Failure): AfterFailure {
  if (status === GONE) return { paused: 'endpoint-gone' };
  const failingMs = failingSince ? now.getTime() - failingSince.getTime() : 0;
  if (failingMs >= PAUSE_AFTER_MS && failures >= PAUSE_AFTER_FAILURES) return { paused: 'no-success' };
  const seconds = BACKOFF_SECONDS[Math.min(failures, BACKOFF_SECONDS.length - 1)] as number;
  return { paused: null, waitMs: Math.max(seconds * 1_000, retryAfterMs) };
}

/**
 * The pause of a subscription after a caller's change.
 *
 * @param old its pause before
 * @param wanted true if the caller pauses it, false if the caller resumes it, undefined if the change names neither
 * @param isPlaceChosen true if the caller says where to continue, which also ends `cursor-expired`
 * @returns `not-chosen` if it cannot continue, because the caller must say where
 */
export function pauseAfter(
  old: PauseReason | null,
  wanted: boolean | undefined,
  isPlaceChosen: boolean,
): PauseReason | null | 'not-chosen' {
  const isExpired = old === 'cursor-expired' && !isPlaceChosen;
  if (isExpired) return wanted === false ? 'not-chosen' : old;
  if (wanted === true) return 'requested';
  return wanted === false || old === 'cursor-expired' ? null : old;
}
