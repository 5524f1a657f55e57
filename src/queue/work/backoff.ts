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
