import type { Options } from './options.js';
import type { Scenario } from './scenario.js';

/** One scenario as it will be run. */
export interface PlannedRun {
  readonly scenario: Scenario;
  readonly seed: number;
  /** The share of the scenario to run, in (0, 1]. */
  readonly share: number;
  readonly queue: 'postgres' | 'redis';
}

/** Minutes of a scenario regardless of its share: its servers start, and it waits for the remaining work. */
const MIN_MINUTES = 0.25;

/**
 * Decides which scenarios run, where their queues are, and which share of each fits into the minutes. The same options
 * always give the same plan.
 *
 * @param hasRedis true if a redis-server is installed
 */
export function planRuns(scenarios: readonly Scenario[], options: Options, hasRedis: boolean): PlannedRun[] {
  const { only, seed, minutes, share, queue } = options;
  const chosen = scenarios
    .map((scenario, place) => ({ scenario, place }))
    .filter(({ scenario: { name } }) => only.length === 0 || only.includes(name))
    .filter(({ scenario: { needsRedis } }) => !needsRedis || (hasRedis && queue !== 'postgres'));
  const whole = chosen.reduce((sum, { scenario }) => sum + scenario.minutes, 0);
  const free = (minutes ?? Number.POSITIVE_INFINITY) - chosen.length * MIN_MINUTES;
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
