import { backoffMs } from '../../queue/backend/backoff.js';

/** Interactive work (a clinician waits) overtakes bulk work (an import). */
export type Lane = 'interactive' | 'bulk';

/** What the log of calls says at one moment, by the database's clock. */
export interface CallWindow {
  now: Date;
  /** Set by a 429: no call before it. */
  blockedUntil: Date | null;
  bulkNextAt: Date | null;
  /** Permits occupied now, and when the first of them becomes free. */
  occupied: number;
  firstFreeAt: Date | null;
}

/** The limit: so many calls in any window of so many milliseconds (spec, Limits: 300 in a minute). */
export interface CallLimit {
  calls: number;
  windowMs: number;
}

/** Milliseconds of the even pace that bulk work may make good after a delay, at most a tenth of the window. */
const CATCH_UP_MS = 1_000;

/** One permit in so many is kept for interactive work: bulk work would take each at the moment it becomes free. */
const RESERVED_ONE_IN = 150;

/** The permits of a window that bulk work takes. */
export function bulkPermits(limit: CallLimit): number {
  return limit.calls - Math.floor(limit.calls / RESERVED_ONE_IN);
}

/** The earliest moment at which a lane may take a permit; not after `now` means that it may take one now. */
export function earliest(lane: Lane, window: CallWindow, limit: CallLimit): Date {
  const moments = [window.now.getTime()];
  if (window.blockedUntil) moments.push(window.blockedUntil.getTime());
  const permits = lane === 'bulk' ? bulkPermits(limit) : limit.calls;
  // The database counts in microseconds and a Date in milliseconds: rounded up, so that full never looks free.
  if (window.occupied >= permits && window.firstFreeAt) moments.push(window.firstFreeAt.getTime() + 1);
  if (lane === 'bulk' && window.bulkNextAt) moments.push(window.bulkNextAt.getTime());
  return new Date(Math.max(...moments));
}

/**
 * When bulk work may take its next permit after it took one now: one pace after the last moment due, so that a late
 * worker catches up, but by no more than a second's worth (the generic cell rate algorithm, ITU-T I.371 annex A).
 */
export function nextBulkAt({ now, bulkNextAt }: Pick<CallWindow, 'now' | 'bulkNextAt'>, limit: CallLimit): Date {
  const paceMs = limit.windowMs / limit.calls;
  const creditMs = Math.max(paceMs, Math.min(CATCH_UP_MS, limit.windowMs / 10));
  return new Date(Math.max(bulkNextAt?.getTime() ?? 0, now.getTime() - creditMs) + paceMs);
}

/**
 * How long every worker pauses after a 429, in milliseconds: as the platform asked, if it did.
 *
 * @param failures 429s in a row, this one included; calls that were already under way when the pause began don't count
 */
export function pauseMs(retryAfterMs: number | undefined, failures: number, fraction: number): number {
  if (retryAfterMs !== undefined) return Math.max(0, retryAfterMs);
  return backoffMs(failures, fraction, { baseMs: 1_000, maxMs: 60_000 });
}
