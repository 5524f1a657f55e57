import { askRedis } from '../../harness/redis-server.js';
import type { Scenario } from '../scenario.js';
import { DeliveryWork } from '../workload/delivery-work.js';
import type { World } from '../world.js';

const KILLS = 100;
/** Of PostgreSQL and of Redis each. */
const FAULTS_OF_STORES = 5;
const PER_SECOND = 100;

/** Receivers are killed under deliveries, PostgreSQL is restarted and Redis is flushed meanwhile. */
export const receiverKills: Scenario = {
  name: 'receiver',
  says: '100 SIGKILLs of receivers under deliveries, PostgreSQL restarted and Redis flushed meanwhile',
  minutes: 5,
  wanted: { without: ['getSession', 'getProcessingSession'] },
  async run(world) {
    const { crew } = world;
    await crew.staff('api,worker', 'api,worker', 'api,worker');
    const work = new DeliveryWork(world, PER_SECOND);
    const kills = world.sized(KILLS, 3);
    const every = Math.max(1, Math.floor(kills / world.sized(FAULTS_OF_STORES)));
    for (let kill = 1; kill <= kills; kill += 1) {
      await crew.killOne();
      if (kill % every === 0) await hurtStores(world);
      await world.soon(500);
    }
    await work.ended();
  },
};

/** An immediate stop of PostgreSQL, as after a crash, or a fast one; and Redis loses everything. */
async function hurtStores(world: World): Promise<void> {
  const { redis, random, counts } = world;
  await world.endPostgres(random.chance(0.5) ? 'SIGQUIT' : 'SIGINT');
  counts.faults += 1;
  if (redis) {
    await askRedis(redis.port, 'FLUSHALL');
    counts.faults += 1;
  }
}
