/** The limits of a queue whose jobs each make at most one call. */
export interface Limits {
  /** Jobs that one window of BullMQ's limiter lets through. */
  readonly max: number;
  /** Length of a window in milliseconds. It starts at the first job that the limiter lets through. */
  readonly duration: number;
  /** Jobs in progress over all processes. Each process takes half of them. */
  readonly concurrency: number;
}

const MINUTE_MS = 60_000;

/** Two is the minimum, because two processes each take one job after a wiped store forgot the global concurrency. */
const MIN_CONCURRENCY = 2;
const MAX_CONCURRENCY = 8;

/** Calls a minute for one job in progress. Each job in progress costs a call of the limit. */
const CALLS_PER_JOB = 20;

const MAX_JOBS = 5;

/** A job in a shorter window waits less for the next one, which is worth a hundredth of the calls. */
const WORTH = 0.99;

/** Shorter windows would make the wake-up after each of them a large part. */
const MIN_DURATION_MS = 200;

/** How late the first job after a window starts, at most: `{ max: 2, duration: 417 }` let 285 calls a minute through. */
const WAKE_UP_MS = 4;

/**
 * Computes the limits with nearly the most calls a minute, in the shortest windows, that never let more than
 * `callsPerMinute` calls arrive in any 60 s:
 *
 * `max · (⌊60 s / duration⌋ + 3) − 1 + concurrency ≤ callsPerMinute`
 *
 * The minute touches two windows in part, and a third one after the store was wiped, because a wiped store forgets the
 * window. Each job in progress may have been let through earlier and call late, so concurrency counts, too.
 *
 * @param callsPerMinute at least 10
 */
export function limitsOf(callsPerMinute: number): Limits {
  const share = Math.floor(callsPerMinute / CALLS_PER_JOB);
  const concurrency = Math.max(MIN_CONCURRENCY, Math.min(MAX_CONCURRENCY, share));
  const candidates = Array.from({ length: MAX_JOBS }, (_, index) =>
    windowOf(index + 1, callsPerMinute + 1 - concurrency),
  );
  const most = Math.max(...candidates.map(rateOf));
  const { max, duration } = candidates.find((one) => rateOf(one) >= most * WORTH) as Window;
  return { max, duration, concurrency };
}

type Window = Pick<Limits, 'max' | 'duration'>;

/** The shortest window of `max` jobs of which so many fit into a minute that at most `jobs` jobs start in it. */
function windowOf(max: number, jobs: number): Window {
  const full = Math.floor(jobs / max) - 3;
  if (full < 1) return { max, duration: Number.POSITIVE_INFINITY };
  return { max, duration: Math.max(MIN_DURATION_MS, Math.floor(MINUTE_MS / (full + 1)) + 1) };
}

const rateOf = ({ max, duration }: Window): number => max / (duration + WAKE_UP_MS);
