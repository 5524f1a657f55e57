import { setTimeout as delay } from 'node:timers/promises';
import { FAULT_KINDS, type FaultKind, type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { Scenario } from '../scenario.js';
import { faultsUnderWork } from '../workload/everyday-work.js';
import type { World } from '../world.js';

const ROUNDS = 3;

/** What a kind needs beside its name. */
const MORE: Partial<Record<FaultKind, Partial<FaultRule>>> = {
  'commit-late': { ms: 700 },
  slow: { ms: 7_000 }, // longer than the service waits
  status: { status: 503 },
};

/** Operations whose answers hold something. No one can tell if another one was answered 200 without effect. */
const READABLE = ['checkUser', 'createProvider', 'createClient', 'createSession', 'getSession'];

/** The platform fails in each of its ways: now and then, and then for a while altogether. */
export const platformFaults: Scenario = {
  name: 'platform',
  says: 'each way in which the platform fails, in some calls and in all of them',
  minutes: 4,
  wanted: { platform: { latencyMs: [0, 60], stepMs: 300, webhookDuplicateRate: 0.2, webhookShuffleMs: 500 } },
  async run(world) {
    const rounds = world.sized(ROUNDS);
    await world.crew.staff('api,worker', 'worker');
    const faults = Array.from({ length: rounds }, () => FAULT_KINDS.map((kind) => () => fail(world, kind))).flat();
    const heal = () => world.simulator.state.faults.clear();
    await faultsUnderWork(world, { people: 100 * rounds, sessions: 30 * rounds }, faults, heal);
  },
};

/** Some calls suffer it until the next kind comes; all of them for a moment. */
async function fail({ simulator, random }: World, kind: FaultKind): Promise<void> {
  const { faults } = simulator.state;
  const rule = { kind, retryAfter: (['seconds', 'date', 'absent'] as const)[random.below(3)], ...MORE[kind] };
  const operations = kind === 'answer' ? READABLE : ['*'];
  const order = (probability: number) =>
    faults.order(operations.map((operation) => readFaultRule({ ...rule, operation, probability })));
  faults.clear();
  order(1);
  await delay(random.between([200, 1_000]));
  faults.clear();
  order(kind === 'forbid' ? 0.02 : 0.2);
}
