import { askRedis } from '../../harness/redis-server.js';
import type { Scenario } from '../scenario.js';
import { DeliveryWork } from '../workload/delivery-work.js';
import type { World } from '../world.js';

const KILLS = 100;
/** Number of faults of PostgreSQL, and of Redis. */
const FAULTS_OF_STORES = 5;
const PER_SECOND = 100;

/** Receivers are killed during deliveries, while PostgreSQL is restarted and Redis is flushed. */
export const receiverKills: Scenario = {
  name: 'receiver',
  says: '100 SIGKILLs of receivers during deliveries, while PostgreSQL is restarted and Redis is flushed',
  minutes: 5,
  wanted: { without: ['getSession', 'getProcessingSession'] },
  async run(world) {
    const { processes } = world;
    await processes.start('api,worker', 'api,worker', 'api,worker');
    const work = new DeliveryWork(world, PER_SECOND);
    const kills = world.sized(KILLS, 3);
    const every = Math.max(1, Math.floor(kills / world.sized(FAULTS_OF_STORES)));
    for (let kill = 1; kill <= kills; kill += 1) {
      await processes.killOne();
      if (kill % every === 0) await disturbStores(world);
      await world.soon(500);
    }
    await work.ended();
  },
};

/** Stops PostgreSQL in immediate mode, as after a crash, or in fast mode; and flushes Redis. */
async function disturbStores(world: World): Promise<void> {
  const { redis, random, counts } = world;
  await world.endPostgres(random.chance(0.5) ? 'SIGQUIT' : 'SIGINT');
  counts.faults += 1;
  if (redis) {
    await askRedis(redis.port, 'FLUSHALL');
    counts.faults += 1;
  }
}
