/**
 * The exponential wait before the next attempt. Its jitter, of up to a quarter, spreads rows that failed together.
 *
 * @param failures consecutive faults, 1 for the first
 * @param fraction a random number in [0, 1)
 * @param bounds of the wait, in milliseconds
 */
export function backoffMs(failures: number, fraction: number, bounds: { baseMs: number; maxMs: number }): number {
  const growth = bounds.baseMs * 2 ** Math.min(30, Math.max(0, failures - 1));
  return Math.min(bounds.maxMs, Math.round(growth * (0.75 + fraction / 2)));
}
