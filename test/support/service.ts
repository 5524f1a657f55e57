import type { ProgramOptions } from '../../harness/program.js';
import { READY, type Service, serviceOf } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../../simulator/app.js';
import { type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { Settings } from '../../simulator/settings.js';
import type { User } from '../../simulator/users/user-directory.js';
import { ADMIN_KEY, testSettings } from './app.js';
import { freshDatabase, query, type TestDatabase } from './databases.js';
import { usePrograms } from './programs.js';

/** A platform, a database, and the services that share them. */
export interface Mirror {
  readonly simulator: Simulator;
  readonly database: TestDatabase;
  /** What each of its processes is started with, unless told otherwise. */
  readonly settings: Readonly<Record<string, string | undefined>>;
  /** Orders trouble of one kind, for the next call that fits unless `count` says otherwise. */
  trouble(rule: Partial<FaultRule> & Pick<FaultRule, 'kind'>): void;
  /** The next call that fits is done at once, and answered when `release` says so. */
  hold(rule: Partial<FaultRule>): void;
  /** Ends the trouble that is on order, and answers every call that the platform holds back. */
  release(): void;
  /** Runs one statement on the database, such as one that moves rows back in time. */
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** The platform's users with this external id. */
  usersOf(externalId: string): User[];
  /** The calls that arrived at the platform, of one operation or of all. */
  arrivals(operation?: string): number;
  /**
   * Starts one more process; again when a slow machine's database was late, as whoever keeps a service running would.
   *
   * @param env beside the usual settings; undefined takes one away
   * @param command of a deployment file, instead of the usual one
   */
  start(env?: Record<string, string | undefined>, command?: readonly string[]): Promise<Service>;
  /** Runs the migrations as a deployment does, in a process that ends. @param env as of `start` @returns what it printed */
  migrate(env?: Record<string, string | undefined>, command?: readonly string[]): Promise<string>;
}

interface MirrorOptions {
  /** Of a server that the suite keeps itself; otherwise one of its own on the shared server. */
  readonly database?: TestDatabase;
  /** The limit of calls per minute on both sides. Defaults to 6,000. */
  readonly calls?: number;
  readonly platform?: Partial<Settings>;
  readonly env?: Record<string, string | undefined>;
}

/** What a process says last that gave up on a database which takes connections, and is slow. */
const DATABASE_LATE =
  /^(Connection terminated due to connection timeout|Query read timeout|timeout exceeded when trying to connect)$/m;

/** Milliseconds that no test lasts. */
const FOREVER_MS = 3_600_000;

const SERVES = ['node', 'dist/src/main.js'];

/** The parts of a command that begins with Node. */
function wordsOf([, ...words]: readonly string[]): Pick<ProgramOptions, 'nodeArgs' | 'file' | 'args'> {
  const at = words.findIndex((word) => !word.startsWith('-'));
  return { nodeArgs: words.slice(0, at), file: words[at] ?? '', args: words.slice(at + 1) };
}

/** To be called once in a suite: the returned function makes a platform, an empty database and whoever mirrors. */
export function useMirrors(): (options?: MirrorOptions) => Promise<Mirror> {
  const startProgram = usePrograms();
  const closing: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of closing) await close();
  });
  return async ({ calls = 6_000, platform = {}, env = {}, ...more } = {}) => {
    const simulator = await buildSimulator({ settings: { callsPerWindow: calls, ...platform } });
    const database = more.database ?? (await freshDatabase());
    closing.push(simulator.close, database.drop);
    const settings = {
      ...testSettings(database.url),
      PLATFORM_BASE_URL: simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_CONTRACT: 'simulator/contract.json',
      PLATFORM_TIMEOUT_SECONDS: '20',
      PORT: '0',
      USER_MANAGEMENT_CALLS_PER_MINUTE: String(calls),
      UNKNOWN_OUTCOME_GRACE_SECONDS: '1',
      ...env,
    };
    const start: Mirror['start'] = async (more = {}, command = SERVES) => {
      const options = { ...wordsOf(command), env: { ...settings, ...more }, ready: READY };
      const program = await until('the service is started', () =>
        startProgram(options).catch((error: Error) => {
          if (!DATABASE_LATE.test(error.message)) throw error;
          return undefined;
        }),
      );
      return serviceOf(program, ADMIN_KEY);
    };
    const migrate: Mirror['migrate'] = async (more = {}, command = [...SERVES, 'migrate']) => {
      const program = await startProgram({ ...wordsOf(command), env: { ...settings, ...more } });
      if ((await program.ended()) !== 0) throw new Error(program.output());
      return program.output();
    };
    const { state } = simulator;
    const trouble: Mirror['trouble'] = (rule) => state.faults.order([readFaultRule({ count: 1, ...rule })]);
    return {
      simulator,
      database,
      settings,
      start,
      migrate,
      trouble,
      hold: (rule) => trouble({ kind: 'slow', ms: FOREVER_MS, ...rule }),
      release: () => {
        state.faults.clear();
        state.timers.cancelAll();
      },
      sql: <Row>(text: string, values?: unknown[]) => query(database, text, values) as Promise<Row[]>,
      usersOf: (externalId) => state.users.list().filter(({ partnerUserId }) => partnerUserId === externalId),
      arrivals: (wanted) =>
        state.arrivals.list().filter(({ operation }) => wanted === undefined || operation === wanted).length,
    };
  };
}
