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
export interface TestWorld {
  readonly simulator: Simulator;
  readonly database: TestDatabase;
  /** Default settings of its processes. */
  readonly settings: Readonly<Record<string, string | undefined>>;
  /** Injects a fault into the next matching call, or into the next `count` of them. */
  injectFault(rule: Partial<FaultRule> & Pick<FaultRule, 'kind'>): void;
  /** Executes the next matching call immediately, but answers it only after `release`. */
  hold(rule: Partial<FaultRule>): void;
  /** Removes every injected fault and answers every held call. */
  release(): void;
  /** Runs one statement on the database, such as one that moves rows back in time. */
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** The platform's users with this external id. */
  usersOf(externalId: string): User[];
  /** The number of calls received by the platform, of one operation or of all. */
  arrivals(operation?: string): number;
  /**
   * Starts one more process, and retries if the database of a slow machine was late, as a supervisor would.
   *
   * @param env in addition to the default settings; undefined removes one
   * @param command of a deployment file, instead of the default one
   */
  start(env?: Record<string, string | undefined>, command?: readonly string[]): Promise<Service>;
  /** Runs the migrations as a deployment does, in a process that ends. @param env as in `start` @returns its output */
  migrate(env?: Record<string, string | undefined>, command?: readonly string[]): Promise<string>;
}

interface WorldOptions {
  /** A database of the suite's own server; by default a new one on the shared server. */
  readonly database?: TestDatabase;
  /** The limit of calls per minute on both sides. Defaults to 6,000. */
  readonly calls?: number;
  readonly platform?: Partial<Settings>;
  readonly env?: Record<string, string | undefined>;
}

/** The last output of a process that gave up on a slow database. */
const DATABASE_LATE =
  /^(Connection terminated due to connection timeout|Query read timeout|timeout exceeded when trying to connect)$/m;

/** Longer than any test lasts. */
const FOREVER_MS = 3_600_000;

const SERVES = ['node', 'dist/src/main.js'];

/** The parts of a command that starts Node. */
function wordsOf([, ...words]: readonly string[]): Pick<ProgramOptions, 'nodeArgs' | 'file' | 'args'> {
  const at = words.findIndex((word) => !word.startsWith('-'));
  return { nodeArgs: words.slice(0, at), file: words[at] ?? '', args: words.slice(at + 1) };
}

/** Call it once per suite: the returned function creates a platform and an empty database, and can start services. */
export function useTestWorlds(): (options?: WorldOptions) => Promise<TestWorld> {
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
    const start: TestWorld['start'] = async (more = {}, command = SERVES) => {
      const options = { ...wordsOf(command), env: { ...settings, ...more }, ready: READY };
      const program = await until('the service has started', () =>
        startProgram(options).catch((error: Error) => {
          if (!DATABASE_LATE.test(error.message)) throw error;
          return undefined;
        }),
      );
      return serviceOf(program, ADMIN_KEY);
    };
    const migrate: TestWorld['migrate'] = async (more = {}, command = [...SERVES, 'migrate']) => {
      const program = await startProgram({ ...wordsOf(command), env: { ...settings, ...more } });
      if ((await program.ended()) !== 0) throw new Error(program.output());
      return program.output();
    };
    const { state } = simulator;
    const injectFault: TestWorld['injectFault'] = (rule) => state.faults.order([readFaultRule({ count: 1, ...rule })]);
    return {
      simulator,
      database,
      settings,
      start,
      migrate,
      injectFault,
      hold: (rule) => injectFault({ kind: 'slow', ms: FOREVER_MS, ...rule }),
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
