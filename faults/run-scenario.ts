import type { Counts } from './counts.js';
import type { Scenario } from './scenario.js';
import { type Setting, World } from './world.js';

/** What became of one scenario. */
export interface Outcome {
  readonly counts: Counts;
  /** The laws that do not hold. */
  readonly broken: readonly string[];
  readonly seconds: number;
}

/** Runs a scenario in a world of its own and asks the oracle, also about what must be true after any fault. */
export async function runScenario(scenario: Scenario, setting: Setting): Promise<Outcome> {
  const begun = performance.now();
  const world = await World.open(setting, scenario.wanted);
  const { oracle, counts, crew, simulator } = world;
  setting.onOpen?.(() => world.close());
  try {
    await scenario.run(world);
    oracle.none('nobody ends by himself', crew.leftByThemselves);
    oracle.none('who is asked to stop ends with 0', await crew.stop());
  } catch (error) {
    oracle.none('the run comes to its end', [error instanceof Error ? error.message : 'something else was thrown']);
    oracle.none('nobody ends by himself', crew.leftByThemselves);
  } finally {
    counts.calls = world.arrivals();
    const { callsPerWindow, windowSeconds } = simulator.state.settings;
    const { largestWindow } = simulator.state.arrivals.stats(windowSeconds).userManagement;
    oracle.atMost('no sliding window holds more calls than the limit', largestWindow.all, callsPerWindow);
    await world.close();
  }
  return { counts, broken: oracle.broken, seconds: (performance.now() - begun) / 1_000 };
}
