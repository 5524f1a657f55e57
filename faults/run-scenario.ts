import type { Counts } from './counts.js';
import type { Scenario } from './scenario.js';
import { type Setting, World } from './world.js';

/** The outcome of one scenario. */
export interface Outcome {
  readonly counts: Counts;
  /** The violated invariants. */
  readonly broken: readonly string[];
  readonly seconds: number;
}

/** Runs a scenario in a new world, and checks its invariants and those of every scenario. */
export async function runScenario(scenario: Scenario, setting: Setting): Promise<Outcome> {
  const startedAt = performance.now();
  const world = await World.open(setting, scenario.wanted);
  const { oracle, counts, processes, simulator } = world;
  setting.onOpen?.(() => world.close());
  try {
    await scenario.run(world);
    oracle.none('no process ends unexpectedly', processes.unexpectedExits);
    oracle.none('a process that is asked to stop exits 0', await processes.stop());
  } catch (error) {
    oracle.none('the run completes', [
      error instanceof Error ? error.message : 'a value other than an error was thrown',
    ]);
    oracle.none('no process ends unexpectedly', processes.unexpectedExits);
  } finally {
    counts.calls = world.arrivals();
    const { callsPerWindow, windowSeconds } = simulator.state.settings;
    const { largestWindow } = simulator.state.arrivals.stats(windowSeconds).userManagement;
    oracle.atMost('no sliding window contains more calls than the limit', largestWindow.all, callsPerWindow);
    await world.close();
  }
  return { counts, broken: oracle.broken, seconds: (performance.now() - startedAt) / 1_000 };
}
