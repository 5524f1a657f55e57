import { askRedis } from '../../harness/redis-server.js';
import type { Scenario } from '../scenario.js';
import { DeliveryWork } from '../workload/delivery-work.js';
import { underRepeats } from '../workload/repeat-work.js';
import type { World } from '../world.js';

const KILLS = 100;
/** Number of faults of PostgreSQL, and of Redis. */
const FAULTS_OF_STORES = 5;
const PER_SECOND = 100;

/** One delivery is repeated without end. Then receivers are killed while PostgreSQL is restarted and Redis is flushed. */
export const receiverKills: Scenario = {
  name: 'receiver',
  says: '200 repeats of a delivery a second; 100 SIGKILLs of receivers, while PostgreSQL is restarted and Redis is flushed',
  minutes: 5,
  wanted: { without: ['getSession', 'getProcessingSession'] },
  async run(world) {
    const { processes } = world;
    await processes.start('api,worker', 'api,worker', 'api,worker');
    await underRepeats(world);
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
