import { setTimeout as delay } from 'node:timers/promises';
import { askRedis } from '../../harness/redis-server.js';
import type { Scenario } from '../scenario.js';
import { faultsUnderWork } from '../workload/everyday-work.js';
import type { World } from '../world.js';

const ROUNDS = 3;
/** How long Redis is unavailable, in milliseconds. */
const OUTAGES_MS = [300, 1_000, 20_000];

/** Redis is killed and restarted empty, flushed, stopped, and disconnected. */
export const redisFaults: Scenario = {
  name: 'redis',
  says: 'Redis killed and restarted empty, flushed, hanging and disconnected during everyday work',
  minutes: 4,
  needsRedis: true,
  wanted: { platform: { latencyMs: [0, 100], stepMs: 300 } },
  async run(world) {
    const rounds = world.sized(ROUNDS);
    await world.processes.start('api,worker', 'worker');
    const faults = Array.from({ length: rounds }, (_, round) => faultsOf(world, round)).flat();
    await faultsUnderWork(world, { people: 80 * rounds, sessions: 20 * rounds }, faults);
  },
};

function faultsOf(world: World, round: number): (() => Promise<void>)[] {
  const { redisProxy, random } = world;
  return [
    async () => {
      await world.redis?.stop('SIGKILL');
      await delay(OUTAGES_MS[round % OUTAGES_MS.length]);
      await world.restartRedis();
    },
    async () => {
      await askRedis(world.redis?.port ?? 0, 'FLUSHALL');
    },
    async () => {
      redisProxy?.stall();
      await delay(random.between([500, 8_000]));
      redisProxy?.resume();
    },
    async () => {
      await redisProxy?.cut();
      await delay(random.between([500, 3_000]));
      await redisProxy?.restore();
    },
    async () => redisProxy?.silence(),
  ];
}
