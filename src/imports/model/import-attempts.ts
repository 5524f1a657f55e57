/** How often planning or applying an import is attempted without getting on, before it fails; about 40 minutes in all. */
export const MOST_ATTEMPTS = 8;

const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 600_000;
const GROWTH = 4;

/** Milliseconds until an import is attempted again. @param attempts that failed so far, from 1 */
export function nextAttemptInMs(attempts: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * GROWTH ** Math.max(0, attempts - 1));
}
