import { FAULT_KINDS, type FaultKind, type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { SeededRandom } from '../../simulator/seeded-random.js';
import type { Settings } from '../../simulator/settings.js';
import type { World } from '../world.js';
import type { Shift } from './shift.js';

/** One way in which the platform fails. */
interface Trouble {
  readonly name: string;
  /** The faults of its calls. */
  readonly rule?: Partial<FaultRule>;
  /** Of the calls, while some of them suffer it. */
  readonly share?: number;
  readonly operations?: readonly string[];
  /** The faults of its webhooks. */
  readonly settings?: Partial<Settings>;
}

const SHARE = 0.2;
/** A rejected key holds up everything for a while, so that much of it would be an outage. */
const SHARE_OF_REJECTIONS = 0.02;

/** Operations whose answers hold something. No one can tell if another one was answered 200 without effect. */
const READABLE = ['checkUser', 'createProvider', 'createClient', 'createSession', 'getSession'];

/** The settings of a kind in addition to its name. */
const MORE: Partial<Record<FaultKind, Omit<Trouble, 'name'>>> = {
  'commit-late': { rule: { ms: 700 } },
  slow: { rule: { ms: 7_000 } }, // longer than the service waits
  status: { rule: { status: 503 } },
  forbid: { share: SHARE_OF_REJECTIONS },
  answer: { operations: READABLE },
};

const statuses = [500, 502, 504].map(
  (status): Trouble => ({ name: `status ${status}`, rule: { kind: 'status', status } }),
);

export const TROUBLES: readonly Trouble[] = [
  ...FAULT_KINDS.map((kind): Trouble => ({ name: kind, ...MORE[kind], rule: { kind, ...MORE[kind]?.rule } })),
  ...statuses,
  { name: 'status 401', rule: { kind: 'status', status: 401 }, share: SHARE_OF_REJECTIONS },
  { name: 'a redirect', rule: { kind: 'status', status: 307 }, operations: ['getSession'] },
  { name: 'a web page', rule: { kind: 'answer', body: '<!doctype html><h1>Sorry</h1>' }, operations: READABLE },
  { name: 'late webhooks', settings: { webhookDelayMs: [0, 30_000] } },
  { name: 'webhooks sent twice', settings: { webhookDuplicateRate: 0.5, webhookRetryTimestamp: 'same' } },
  { name: 'webhooks out of order', settings: { webhookShuffleMs: 8_000 } },
];

/** The platform fails in each way, one after the other, in another order each time. */
export class Troubles {
  private readonly usual: Settings;
  private left: Trouble[] = [];

  /** @param turnMs from one to the next: half of it some calls suffer, the first twelfth all, up to ten seconds */
  constructor(
    private readonly world: World,
    private readonly shift: Shift,
    private readonly turnMs: number,
  ) {
    this.usual = world.simulator.state.settings;
  }

  /** Lets the platform fail in the next way, and heal again. */
  async next(): Promise<void> {
    const { random, counts } = this.world;
    if (this.left.length === 0) this.left = shuffled(TROUBLES, random);
    const trouble = this.left.pop() as Trouble;
    this.suffer(trouble, 1);
    await this.shift.rest(Math.min(10_000, this.turnMs / 12));
    this.heal();
    this.suffer(trouble, trouble.share ?? SHARE);
    await this.shift.rest(this.turnMs / 2);
    this.heal();
    counts.faults += 1;
  }

  heal(): void {
    const { state } = this.world.simulator;
    state.faults.clear();
    state.settings = { ...this.usual };
  }

  private suffer({ rule, operations = ['*'], settings }: Trouble, probability: number): void {
    const { simulator, random } = this.world;
    const { state } = simulator;
    state.settings = { ...state.settings, ...settings };
    if (!rule) return;
    const retryAfter = (['seconds', 'date', 'absent'] as const)[random.below(3)];
    const more = { retryAfter, retryAfterSeconds: 1 + random.below(20), probability };
    state.faults.order(operations.map((operation) => readFaultRule({ ...rule, ...more, operation })));
  }
}

function shuffled<T>(all: readonly T[], random: SeededRandom): T[] {
  const left = [...all];
  return all.map(() => left.splice(random.below(left.length), 1)[0] as T);
}
