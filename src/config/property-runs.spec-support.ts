const CASES = Number(process.env.CASES ?? (process.env.FULL === '1' ? 10_000 : 500));

/**
 * The settings of every property test: the seed of this run, and 500 cases, 10,000 with `FULL=1`, or `CASES`.
 *
 * @param share of the cases that run, for a property whose single case takes milliseconds
 */
export const propertyRuns = (share = 1) => ({ seed: Number(process.env.SEED), numRuns: Math.ceil(CASES * share) });
