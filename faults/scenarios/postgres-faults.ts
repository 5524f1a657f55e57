import { setTimeout as delay } from 'node:timers/promises';
import { KEEP_ALIVE_ENDS_MS } from '../../harness/tcp-proxy.js';
import type { Scenario } from '../scenario.js';
import { faultsUnderWork } from '../workload/everyday-work.js';
import type { World } from '../world.js';

const ROUNDS = 4;

/** PostgreSQL is killed, restarted and stopped, and its connections are cut or silently dropped. */
export const postgresFaults: Scenario = {
  name: 'postgres',
  says: 'PostgreSQL killed, restarted, hanging, disconnected and silently disconnected during everyday work',
  minutes: 4,
  wanted: {
    platform: { latencyMs: [0, 100], stepMs: 300 },
    // The platform answers every call, so none may time out because the machine is busy.
    env: { PLATFORM_TIMEOUT_SECONDS: '60' },
  },
  async run(world) {
    const rounds = world.sized(ROUNDS);
    await world.processes.start('api,worker', 'worker');
    const faults = Array.from({ length: rounds }, () => faultsOf(world)).flat();
    await faultsUnderWork(world, { people: 80 * rounds, sessions: 20 * rounds }, faults);
    // No process was killed, so each answer of the platform is held until it can be stored.
    await world.reach('every answer of the platform is stored', async () => {
      return (await world.count('people WHERE call_id IS NOT NULL')) === 0;
    });
    world.oracle.same('no one needs a review', await world.count("people WHERE state = 'needs-review'"), 0);
  },
};

function faultsOf(world: World): (() => Promise<void>)[] {
  const { databaseProxy, random } = world;
  const second = random.chance(0.5) ? 'SIGQUIT' : 'SIGINT';
  return [
    () => world.endPostgres('SIGKILL'),
    () => world.endPostgres(second), // immediate or fast shutdown
    async () => {
      databaseProxy.stall();
      await delay(random.between([500, 8_000]));
      databaseProxy.resume();
    },
    async () => {
      await databaseProxy.cut();
      await delay(random.between([500, 5_000]));
      await databaseProxy.restore();
    },
    async () => databaseProxy.silence(KEEP_ALIVE_ENDS_MS),
  ];
}
