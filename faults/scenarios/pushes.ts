import type { Scenario } from '../scenario.js';
import { PushWork } from '../workload/push-work.js';

const EVENTS = 10_000;
const KILLS = 30;
/** Number of rounds; in each, the endpoint misbehaves in every way. */
const ROUNDS = 5;

/** An endpoint of the EHR misbehaves in every way while the processes that push to it are killed. */
export const pushes: Scenario = {
  name: 'pushes',
  says: '10,000 events to an endpoint that misbehaves in every way, with 30 SIGKILLs of two processes',
  minutes: 15,
  async run(world) {
    const { processes } = world;
    await processes.start('api,worker', 'api,worker');
    const work = new PushWork(world);
    await work.begin();
    const kills = world.sized(KILLS, 2);
    const perKill = Math.ceil(world.sized(EVENTS, 200) / kills);
    const misbehaving = repeat(world.sized(ROUNDS), () => work.misbehave());
    for (let kill = 1; kill <= kills; kill += 1) {
      await work.append(perKill);
      await world.soon(1_000);
      await processes.killOne();
      await world.soon(10_000 * world.setting.share);
    }
    await misbehaving;
    await work.ended();
  },
};

async function repeat(times: number, work: () => Promise<void>): Promise<void> {
  for (let done = 0; done < times; done += 1) await work();
}
