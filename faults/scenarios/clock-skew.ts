import type { Scenario } from '../scenario.js';
import { faultsUnderWork } from '../workload/everyday-work.js';

const KILLS = 10;
const TEN_MINUTES_MS = 600_000;

/** Processes with clocks ten minutes apart work together; some are killed. */
export const clockSkew: Scenario = {
  name: 'clocks',
  says: 'processes with clocks ten minutes apart, some of them killed',
  minutes: 2,
  wanted: { platform: { latencyMs: [0, 60], stepMs: 300 } },
  async run(world) {
    const { processes } = world;
    const kills = world.sized(KILLS);
    for (const skewMs of [-TEN_MINUTES_MS, 0, TEN_MINUTES_MS]) {
      await processes.add('api,worker', { PRELOAD: 'dist/harness/clock-skew.js', CLOCK_SKEW_MS: String(skewMs) });
    }
    await processes.up();
    const size = { people: Math.max(60, 30 * kills), sessions: Math.max(10, 6 * kills) };
    await faultsUnderWork(
      world,
      size,
      Array.from({ length: kills }, () => () => processes.killOne()),
    );
  },
};
