/** Seconds until a row whose work failed is due again, by its consecutive failures; the last value repeats. */
const SECONDS = [15, 60, 300, 1_800, 3_600] as const;

/**
 * The time when a row is due again.
 *
 * @param failures consecutive ones, 1 for the first
 * @param now of the database
 */
export function backoff(failures: number, now: Date): Date {
  const seconds = SECONDS[Math.min(Math.max(failures, 1), SECONDS.length) - 1] as number;
  return new Date(now.getTime() + seconds * 1_000);
}

/** Bounds of an exponential wait, in milliseconds. */
export interface Bounds {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** After a failed fetch. */
export const FAULT_BACKOFF: Bounds = { baseMs: 2_000, maxMs: 15 * 60_000 };

/** After a 404. It grows over two days, from seconds for things that the platform has just created. */
export const NOT_FOUND_BACKOFF: Bounds = { baseMs: 4_000, maxMs: 24 * 3_600_000 };

/**
 * The exponential wait before the next attempt. Its jitter, of up to a quarter, spreads rows that failed together.
 *
 * @param failures consecutive faults, 1 for the first
 * @param fraction a random number in [0, 1)
 * @param bounds of the wait, in milliseconds
 */
export function backoffMs(failures: number, fraction: number, bounds: Bounds): number {
  const growth = bounds.baseMs * 2 ** Math.min(30, Math.max(0, failures - 1));
  return Math.min(bounds.maxMs, Math.round(growth * (0.75 + fraction / 2)));
}
