/** Interactive work (a clinician waits) overtakes bulk work (an import). */
export type Lane = 'interactive' | 'bulk';

/** The state of the call log at one time, by the database clock. */
export interface CallWindow {
  now: Date;
  /** The end of the pause after a 429. */
  blockedUntil: Date | null;
  bulkNextAt: Date | null;
  /** The occupied permits, and the time when the first of them becomes free. */
  occupied: number;
  firstFreeAt: Date | null;
}

/** Maximum calls in any window of `windowMs` (spec, Limits: 300 per minute). */
export interface CallLimit {
  calls: number;
  windowMs: number;
}

/** Maximum delay that bulk work may catch up. */
const CATCH_UP_MS = 1_000;

/** One permit in 150 is reserved for interactive work, because bulk work would take each one as soon as it is free. */
const PERMITS_PER_RESERVED = 150;

/** The permits of a window that bulk work may take. */
export function bulkPermits(limit: CallLimit): number {
  return limit.calls - Math.floor(limit.calls / PERMITS_PER_RESERVED);
}

/** The earliest time when a lane may take a permit; never before `now`. */
export function earliest(lane: Lane, window: CallWindow, limit: CallLimit): Date {
  const moments = [window.now.getTime()];
  if (window.blockedUntil) moments.push(window.blockedUntil.getTime());
  const permits = lane === 'bulk' ? bulkPermits(limit) : limit.calls;
  // Rounds up, because the database counts in microseconds and a full window must not look free.
  if (window.occupied >= permits && window.firstFreeAt) moments.push(window.firstFreeAt.getTime() + 1);
  if (lane === 'bulk' && window.bulkNextAt) moments.push(window.bulkNextAt.getTime());
  return new Date(Math.max(...moments));
}

/**
 * The time of the next bulk permit after one is taken now: one pace after the time when this one was due, so that a
 * late worker catches up, but at most `CATCH_UP_MS` (the generic cell rate algorithm, ITU-T I.371 annex A).
 */
export function nextBulkAt({ now, bulkNextAt }: Pick<CallWindow, 'now' | 'bulkNextAt'>, limit: CallLimit): Date {
  const paceMs = limit.windowMs / limit.calls;
  const creditMs = Math.max(paceMs, CATCH_UP_MS);
  return new Date(Math.max(bulkNextAt?.getTime() ?? 0, now.getTime() - creditMs) + paceMs);
}

/** The longest pause of all calls after a 429, which concerns one operation beyond that. */
const PAUSE_MAX_MS = 60_000;
const PAUSE_MIN_MS = 1_000;

/**
 * How long all calls pause after a 429, in milliseconds.
 *
 * @param retryAfterMs null without Retry-After: then until the first permit of the window is free
 */
export function sharedPauseMs(retryAfterMs: number | null, { firstFreeAt, now }: CallWindow): number {
  const wantedMs = retryAfterMs ?? (firstFreeAt?.getTime() ?? 0) - now.getTime();
  return Math.min(PAUSE_MAX_MS, Math.max(PAUSE_MIN_MS, wantedMs));
}
