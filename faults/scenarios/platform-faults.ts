import { setTimeout as delay } from 'node:timers/promises';
import { FAULT_KINDS, type FaultKind, type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { Scenario } from '../scenario.js';
import { faultsUnderWork } from '../workload/everyday-work.js';
import type { World } from '../world.js';

const ROUNDS = 3;

/** Further settings of a kind of fault. */
const MORE: Partial<Record<FaultKind, Partial<FaultRule>>> = {
  'commit-late': { ms: 700 },
  slow: { ms: 7_000 }, // longer than the service waits
  status: { status: 503 },
};

/** Operations whose answers have content. For others, a 200 without effect cannot be detected. */
const READABLE = ['checkUser', 'createProvider', 'createClient', 'createSession', 'getSession'];

/** The platform fails in each way, first for some calls, then for all calls for a while. */
export const platformFaults: Scenario = {
  name: 'platform',
  says: 'each kind of platform fault, for some calls and for all of them',
  minutes: 4,
  wanted: { platform: { latencyMs: [0, 60], stepMs: 300, webhookDuplicateRate: 0.2, webhookShuffleMs: 500 } },
  async run(world) {
    const rounds = world.sized(ROUNDS);
    await world.processes.start('api,worker', 'worker');
    const faults = Array.from({ length: rounds }, () => FAULT_KINDS.map((kind) => () => fail(world, kind))).flat();
    const heal = () => world.simulator.state.faults.clear();
    await faultsUnderWork(world, { people: 100 * rounds, sessions: 30 * rounds }, faults, heal);
  },
};

/** Injects a kind of fault into some calls until the next kind, and into all calls for a moment. */
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
  // A person who alone is refused twice fails, and waits for the EHR.
  if (kind !== 'forbid') order(0.2);
}
