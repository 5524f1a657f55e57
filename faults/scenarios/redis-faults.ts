import { setTimeout as delay } from 'node:timers/promises';
import { askRedis } from '../../harness/redis-server.js';
import type { Scenario } from '../scenario.js';
import { faultsUnderWork } from '../workload/everyday-work.js';
import type { World } from '../world.js';

const ROUNDS = 3;
/** Milliseconds for which Redis is away. */
const AWAY_MS = [300, 1_000, 20_000];

/** Redis dies and comes back empty, is flushed, hangs, and is cut off. */
export const redisFaults: Scenario = {
  name: 'redis',
  says: 'Redis killed and started again empty, flushed, stuck and cut off under everything that the service does',
  minutes: 4,
  needsRedis: true,
  wanted: { platform: { latencyMs: [0, 100], stepMs: 300 } },
  async run(world) {
    const rounds = world.sized(ROUNDS);
    await world.crew.staff('api,worker', 'worker');
    const faults = Array.from({ length: rounds }, (_, round) => faultsOf(world, round)).flat();
    await faultsUnderWork(world, { people: 80 * rounds, sessions: 20 * rounds }, faults);
  },
};

function faultsOf(world: World, round: number): (() => Promise<void>)[] {
  const { redisProxy, random } = world;
  return [
    async () => {
      await world.redis?.stop('SIGKILL');
      await delay(AWAY_MS[round % AWAY_MS.length]);
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
