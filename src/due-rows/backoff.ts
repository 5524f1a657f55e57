/**
 * The wait before the next try: exponential, with a jitter of a quarter up or down so that many do not come back at
 * once, and never more than the maximum.
 *
 * @param failures faults in a row, 1 for the first
 * @param fraction a random number in [0, 1)
 * @param bounds of the wait, in milliseconds
 */
export function backoffMs(failures: number, fraction: number, bounds: { baseMs: number; maxMs: number }): number {
  const growth = bounds.baseMs * 2 ** Math.min(30, Math.max(0, failures - 1));
  return Math.min(bounds.maxMs, Math.round(growth * (0.75 + fraction / 2)));
}
