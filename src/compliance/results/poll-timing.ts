/** However long a job takes, it is looked up this often, in milliseconds. */
const LONGEST_PAUSE_MS = 6 * 3_600_000;

/**
 * When a job is looked up next: soon at first, then less and less often, each pause half as long as what was waited
 * until then.
 *
 * @param since when the waiting began
 * @param shortestMs the shortest pause, in milliseconds (COMPLIANCE_REFRESH_EVERY_SECONDS)
 */
export function nextPoll(since: Date, now: Date, shortestMs: number): Date {
  const waitedMs = Math.max(0, now.getTime() - since.getTime());
  return new Date(now.getTime() + Math.max(shortestMs, Math.min(LONGEST_PAUSE_MS, waitedMs / 2)));
}
