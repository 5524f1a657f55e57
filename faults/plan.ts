import type { Options } from './options.js';
import type { Scenario } from './scenario.js';

/** One scenario as it will be run. */
export interface PlannedRun {
  readonly scenario: Scenario;
  readonly seed: number;
  /** How much of the whole of it is done, in (0, 1]. */
  readonly share: number;
  readonly queue: 'postgres' | 'redis';
}

/** Minutes that a scenario takes however little of it is done: its servers start, and what is left is waited for. */
const LEAST_MINUTES = 0.25;

/**
 * Which scenarios are run, where their queues are, and how much of each fits into the minutes. The same options always
 * give the same plan.
 *
 * @param hasRedis whether there is a redis-server
 */
export function planRuns(scenarios: readonly Scenario[], options: Options, hasRedis: boolean): PlannedRun[] {
  const { only, seed, minutes, share, queue } = options;
  const chosen = scenarios
    .map((scenario, place) => ({ scenario, place }))
    .filter(({ scenario: { name } }) => only.length === 0 || only.includes(name))
    .filter(({ scenario: { needsRedis } }) => !needsRedis || (hasRedis && queue !== 'postgres'));
  const whole = chosen.reduce((sum, { scenario }) => sum + scenario.minutes, 0);
  const free = (minutes ?? Number.POSITIVE_INFINITY) - chosen.length * LEAST_MINUTES;
  const fits = Math.min(1, Math.max(0.02, free / whole));
  return chosen.map(({ scenario, place }) => {
    const onRedis = scenario.needsRedis || (queue ? queue === 'redis' : (place + seed) % 2 === 0);
    return {
      scenario,
      seed: seed + place,
      share: share ?? Number(fits.toFixed(3)),
      queue: hasRedis && onRedis ? 'redis' : 'postgres',
    };
  });
}

/**
 * Runs the plan in its order, several runs at a time. A scenario that measures the machine runs alone, after the
 * others.
 *
 * @param lanes how many runs at a time
 */
export async function inLanes(
  plan: readonly PlannedRun[],
  lanes: number,
  run: (one: PlannedRun) => Promise<void>,
): Promise<void> {
  const shared = plan.filter(({ scenario }) => !scenario.alone).values();
  const lane = async () => {
    for (const one of shared) await run(one);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  for (const one of plan) if (one.scenario.alone) await run(one);
}
