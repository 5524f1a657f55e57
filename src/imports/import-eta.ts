/** What is left of a running import. */
export interface Remaining {
  /** The fewest and the most calls that the pending rows can take. */
  callsMin: number;
  callsMax: number;
  /** How many of its people were found on the platform, and how many were created. */
  linked: number;
  created: number;
}

/** People after whom their share of links says more than an assumption does. */
const ENOUGH = 10;

/**
 * The seconds that an import still takes: calls left ÷ budget. Whether a person is linked or created decides between
 * the fewest and the most calls; the share so far is the estimate, and before there is one, creates are assumed.
 *
 * @param paceMs milliseconds between two bulk calls
 */
export function etaSeconds(remaining: Remaining, paceMs: number): number {
  const seen = remaining.linked + remaining.created;
  const linkedShare = seen < ENOUGH ? 0 : remaining.linked / seen;
  const calls = remaining.callsMax - (remaining.callsMax - remaining.callsMin) * linkedShare;
  return Math.ceil((calls * paceMs) / 1_000);
}
