/** The calls that people of one kind still take, and what the checks of others said. */
export interface RemainingCalls {
  min: number;
  max: number;
  /** People who were found on the platform. */
  linked: number;
  /** People who were not. */
  absent: number;
}

/** Milliseconds between two counts of the outcomes: an import ends with the count that finds no row pending. */
export const COUNT_EVERY_MS = 700;

/**
 * The seconds that an import still takes: expected calls ÷ allowed rate, after the rest of a pause. Only its check shows
 * whether a person takes the fewest calls or the most; those checked so far are a fair sample, since rows go in shuffled
 * order, and half a person of each sort stands for those before them. Other load is not known.
 */
export function etaSeconds(remaining: readonly RemainingCalls[], pace: { callMs: number; blockedMs: number }): number {
  const calls = remaining.reduce(
    (sum, { min, max, linked, absent }) => sum + min + ((max - min) * (absent + 0.5)) / (linked + absent + 1),
    0,
  );
  return Math.ceil((pace.blockedMs + calls * pace.callMs) / 1_000);
}
