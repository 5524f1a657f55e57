import fc from 'fast-check';
import type { World } from '../../../harness/world/world.js';
import type { WorldService } from '../../../harness/world/world-service.js';
import { CallsRepository } from '../../../src/people/store/calls.repository.js';
import { importsIn } from '../../imports/imports.js';

/** The people of the EHR: `c-2` has no email. */
export const KEYS = ['providers/p-1', 'providers/p-2', 'clients/c-1', 'clients/c-2', 'clients/c-3'] as const;
export type Key = (typeof KEYS)[number];

/** What the EHR says about a person. */
export interface Said {
  email: string | null;
  providers: string[];
}

const OPERATIONS = ['checkUser', 'createProvider', 'createClient', 'setClientProviders', 'deleteUser'] as const;

/** Answers of the platform to the next call of an operation. */
const FAULTS = {
  '400': { kind: 'status', status: 400 },
  '401': { kind: 'status', status: 401 },
  '403': { kind: 'forbid' },
  '404': { kind: 'status', status: 404 },
  '405': { kind: 'status', status: 405 },
  '429': { kind: 'rate-limit', retryAfterSeconds: 7 },
  '429 without a time': { kind: 'rate-limit', retryAfter: 'absent' },
  '502': { kind: 'status', status: 502 },
  'not connected': { kind: 'refuse' },
  'done, then cut': { kind: 'commit-then-cut' },
  'done, then 500': { kind: 'commit-then-500' },
  'done, then garbage': { kind: 'bad-json' },
  'done after the answer was given up': { kind: 'commit-late', ms: 30_000 },
  late: { kind: 'slow', ms: 3_000 },
  'too late': { kind: 'slow', ms: 40_000 },
} as const;
type Fault = keyof typeof FAULTS;

export type Command =
  | { do: 'put'; key: Key; email: 0 | 1; both: boolean }
  | { do: 'delete'; key: Key }
  | { do: 'import'; email: 0 | 1; keys: Key[] }
  | { do: 'fault'; operation: (typeof OPERATIONS)[number]; fault: Fault; times: number }
  | { do: 'crash'; when: 'before the call' | 'after the call' }
  | { do: 'work'; process: 0 | 1; rounds: number }
  | { do: 'wipe' | 'settle' | 'mute' }
  | { do: 'wait'; seconds: number };

const any = <Name extends Command['do'], Rest extends object>(
  name: Name,
  rest: { [K in keyof Rest]: fc.Arbitrary<Rest[K]> },
) => fc.record({ do: fc.constant(name), ...rest }) as unknown as fc.Arbitrary<Command>;
const key = fc.constantFrom(...KEYS);
const email = fc.constantFrom<0 | 1>(0, 0, 1);

export const anyCommand: fc.Arbitrary<Command> = fc.oneof(
  { weight: 6, arbitrary: any('put', { key, email, both: fc.boolean() }) },
  { weight: 2, arbitrary: any('delete', { key }) },
  { weight: 1, arbitrary: any('import', { email, keys: fc.uniqueArray(key, { minLength: 1 }) }) },
  {
    weight: 7,
    arbitrary: any('fault', {
      operation: fc.constantFrom(...OPERATIONS),
      fault: fc.constantFrom(...(Object.keys(FAULTS) as Fault[])),
      times: fc.constantFrom(1, 1, 1, 2, 6),
    }),
  },
  {
    weight: 1,
    arbitrary: any('crash', { when: fc.constantFrom('before the call' as const, 'after the call' as const) }),
  },
  {
    weight: 6,
    arbitrary: any('work', { process: fc.constantFrom<0 | 1>(0, 0, 1), rounds: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 1, arbitrary: any('wipe', {}) },
  { weight: 3, arbitrary: any('settle', {}) },
  { weight: 1, arbitrary: any('mute', {}) },
  { weight: 3, arbitrary: any('wait', { seconds: fc.constantFrom(1, 8, 16, 62, 100) }) },
);

/** Everything that happened, and what the EHR said last. */
export class History {
  readonly said = new Map<Key, Said | null>();
  /** Platform users that existed at the same time with the same id of the EHR. */
  readonly doubled: string[] = [];
  private other: WorldService | undefined;
  private readonly working: Promise<unknown>[] = [];

  constructor(
    private readonly world: World,
    private readonly startOther: () => Promise<WorldService>,
  ) {}

  async do(command: Command): Promise<void> {
    const { world } = this;
    switch (command.do) {
      case 'put':
        await this.put(command.key, command.email, command.both);
        break;
      case 'delete': {
        const { status } = await world.call('DELETE', `/v1/${command.key}`);
        if (status < 300) this.said.set(command.key, null);
        break;
      }
      case 'import':
        await this.import(command.keys, command.email);
        break;
      case 'fault':
        world.platform.injectFault({ operation: command.operation, count: command.times, ...FAULTS[command.fault] });
        break;
      case 'crash':
        this.crash(command.when);
        break;
      case 'work':
        for (let round = 0; round < command.rounds; round += 1) await this.work(command.process);
        break;
      case 'wipe':
        world.forgetJobs();
        break;
      case 'settle':
        await this.settle();
        break;
      case 'mute':
        world.platform.set({ webhookUrl: '' });
        break;
      case 'wait':
        await world.advance(`${command.seconds} s`);
    }
    this.look();
  }

  /** Lets the platform work again, and time pass until nothing is left to do. @param mend ends the faults of the service */
  async end(mend = () => void jest.restoreAllMocks()): Promise<void> {
    const { world } = this;
    world.platform.release();
    mend();
    await Promise.all(this.working);
    for (const span of ['1 s', '45 s', '2 min', '6 min', '31 min', '61 min', '61 min'] as const) {
      await world.settle();
      await world.advance(span);
      this.look();
    }
    await world.settle();
    this.look();
  }

  private async put(key: Key, variant: 0 | 1, both: boolean): Promise<void> {
    const said = saidOf(key, variant, both);
    const body = { firstName: 'Pia', lastName: 'Ruiz', ...(said.email && { email: said.email }) };
    const list = key.startsWith('clients') ? { providers: said.providers } : {};
    const { status } = await this.world.call('PUT', `/v1/${key}`, { body: { ...body, ...list } });
    if (status < 300) this.said.set(key, said);
  }

  private async import(keys: readonly Key[], variant: 0 | 1): Promise<void> {
    const rows = keys.filter((key) => this.said.get('providers/p-1') || !key.startsWith('clients'));
    const lines = rows.map((key) => {
      const { email, providers } = saidOf(key, variant, false);
      const [kind = '', id = ''] = key.split('/');
      return `${kind.slice(0, -1)},${id},${email ?? ''},Pia,Ruiz,${providers.join('|')}`;
    });
    if (lines.length === 0) return;
    const content = ['kind,externalId,email,firstName,lastName,providers', ...lines].join('\n');
    await importsIn(this.world).start('', [{ name: 'people.csv', type: 'text/csv', content }]);
    await this.world.work.imports();
    for (const key of rows) this.said.set(key, saidOf(key, variant, false));
  }

  /** The process that makes the next call dies; its queue gives the job to no one. */
  private crash(when: 'before the call' | 'after the call'): void {
    const rows = this.world.get(CallsRepository);
    const take = rows.take.bind(rows);
    if (when === 'after the call') jest.spyOn(rows, 'settle').mockResolvedValueOnce(false);
    else jest.spyOn(rows, 'take').mockImplementationOnce((...args) => take(...args).then(() => undefined));
  }

  /** A round of one process. Calls that the platform answers late go on meanwhile. */
  private async work(process: 0 | 1): Promise<void> {
    await this.world.advance('50 ms');
    if (process === 1) this.other ??= await this.startOther();
    let isOver = false;
    const working = (process === 1 && this.other ? this.other : this.world).work.jobs().finally(() => {
      isOver = true;
    });
    this.working.push(working);
    await this.world.eventually('the round ends', () => isOver || this.world.platform.holdsAllCalls || undefined);
  }

  /** Works until nothing is due. Time passes while the platform keeps a call waiting. */
  private async settle(): Promise<void> {
    let isOver = false;
    const settled = this.world.settle().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await this.world.eventually('the work ends', () => isOver || this.world.platform.holdsAllCalls || undefined);
      if (!isOver) await this.world.advance('1 s');
    }
    await settled;
  }

  /** Records users that exist twice. */
  private look(): void {
    for (const key of KEYS) {
      const [, id = ''] = key.split('/');
      if (this.world.platform.usersOf(id).length > 1) this.doubled.push(key);
    }
  }
}

function saidOf(key: Key, variant: 0 | 1, both: boolean): Said {
  const [kind, id] = key.split('/');
  const email = key === 'clients/c-2' ? null : `${id}-${variant}@example.org`;
  return { email, providers: kind === 'clients' ? (both ? ['p-2', 'p-1'] : ['p-1']) : [] };
}
