/** Milliseconds that the sender's clock may be ahead of ours. */
export const FUTURE_SKEW_MS = 5 * 60_000;

/**
 * Judges the age of a delivery by its timestamp header; a repeat inside the window is recognised by its signature.
 *
 * @param sentAt milliseconds since the Unix epoch, by the sender's clock
 * @param maxAgeSeconds undefined: any age will do
 */
export function ageFault(
  sentAt: number,
  now: number,
  maxAgeSeconds: number | undefined,
): 'stale' | 'future' | undefined {
  if (maxAgeSeconds === undefined) return undefined;
  if (now - sentAt > maxAgeSeconds * 1000) return 'stale';
  if (sentAt - now > FUTURE_SKEW_MS) return 'future';
  return undefined;
}
