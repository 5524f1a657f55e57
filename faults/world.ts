import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type Balancer, startBalancer } from '../harness/balancer.js';
import type { PostgresServer } from '../harness/postgres-server.js';
import { killPostmaster } from '../harness/postmaster.js';
import { Programs } from '../harness/program.js';
import { type RedisServer, startRedis } from '../harness/redis-server.js';
import { READY, type Service, serviceOf } from '../harness/service.js';
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../simulator/app.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import type { Settings } from '../simulator/settings.js';
import { startEmbeddedPostgres } from '../src/embedded-postgres/embedded-postgres.js';
import { emptyTally } from './counts.js';
import { Crew } from './crew.js';
import { Ehr } from './ehr.js';
import { Oracle } from './oracle.js';

export const ADMIN_KEY = 'admin-key-of-the-notebridge-faults';
export const WEBHOOK_SECRET = 'webhook-secret-of-the-faults';
export const DATA_KEY = `k1:${Buffer.alloc(32, 9).toString('base64')}`;

/** Milliseconds between two words about something that takes long. */
const SAY_EVERY_MS = 30_000;

/** What a run of one scenario starts from. */
export interface Setting {
  /** What all its chance comes from. */
  readonly seed: number;
  /** How much of the whole scenario is done, in (0, 1]. */
  readonly share: number;
  /** A redis-server, when the queues are to run on Redis. */
  readonly redisServer?: string;
  /** Starts a PostgreSQL other than the embedded one. */
  readonly startPostgres?: (folder: string) => Promise<PostgresServer>;
  readonly log: (line: string) => void;
  /** Is given what ends the run and everything that it started, for whoever is interrupted. */
  readonly onOpen?: (close: () => Promise<void>) => void;
}

/** What a scenario wants of its surroundings. */
export interface Wanted {
  readonly platform?: Partial<Settings>;
  /** User-management calls in a minute, as both sides count them. */
  readonly calls?: number;
  /** Operations that the contract file leaves out. */
  readonly without?: readonly string[];
  readonly env?: Record<string, string>;
  /** Characters of the output of a process that are surely kept; all of it unless told. */
  readonly keeps?: number;
  /** No proxy before PostgreSQL and Redis, which would take time of this process for each statement. */
  readonly direct?: boolean;
}

/** A platform, a PostgreSQL, perhaps a Redis, and the processes of the service, which reach both through a proxy. */
export class World {
  readonly oracle = new Oracle();
  readonly counts = emptyTally();
  readonly random: SeededRandom;
  readonly crew: Crew;
  readonly ehr: Ehr;
  private balancer: Balancer | undefined;
  private readonly programs = new Programs();

  private constructor(
    readonly setting: Setting,
    /** Holds the files of PostgreSQL and Redis. */
    readonly folder: string,
    readonly simulator: Simulator,
    /** Replaced when it is started again. */
    public postgres: PostgresServer,
    /** Without a proxy, for whoever looks from outside. */
    private readonly sqlPool: pg.Pool,
    readonly databaseProxy: TcpProxy,
    /** Present when the queues run on Redis; replaced when it is started again. */
    public redis: RedisServer | undefined,
    readonly redisProxy: TcpProxy | undefined,
    private readonly env: Record<string, string>,
    private readonly keeps: number | undefined,
  ) {
    this.random = new SeededRandom(setting.seed);
    this.crew = new Crew((settings) => this.startOne(settings), this.random, this.counts);
    this.ehr = new Ehr(
      () => this.receivers.map((port) => `http://127.0.0.1:${port}`),
      ADMIN_KEY,
      this.random,
      this.counts,
    );
  }

  /** @param wanted what differs from the usual surroundings */
  static async open(
    setting: Setting,
    { platform, calls = 3_600, without = [], env, keeps, direct }: Wanted = {},
  ): Promise<World> {
    const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-faults-'));
    chmodSync(folder, 0o711); // PostgreSQL may run as another user
    const simulator = await buildSimulator({
      seed: setting.seed,
      settings: { callsPerWindow: calls, webhookSecret: WEBHOOK_SECRET, webhookRetryBaseMs: 100, ...platform },
    });
    const postgres = await (setting.startPostgres ?? embedded)(folder);
    const database = new URL(postgres.url);
    const sqlPool = new pg.Pool({ connectionString: database.toString(), max: 4 });
    sqlPool.on('error', () => undefined);
    const databaseProxy = await startTcpProxy(Number(database.port));
    if (!direct) database.port = String(databaseProxy.port);
    const redis = setting.redisServer ? await startRedis(setting.redisServer, folder) : undefined;
    const redisProxy = redis && (await startTcpProxy(redis.port));
    const redisPort = direct ? redis?.port : redisProxy?.port;
    const common = {
      PLATFORM_BASE_URL: simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_WEBHOOK_SECRET: WEBHOOK_SECRET,
      PLATFORM_CONTRACT: contractWithout(folder, without),
      PLATFORM_TIMEOUT_SECONDS: '5',
      ADMIN_API_KEY: ADMIN_KEY,
      DATABASE_URL: database.toString(),
      DATA_KEYS: DATA_KEY,
      FINGERPRINT_KEYS: DATA_KEY,
      AUDIT_KEYS: DATA_KEY,
      REDIS_URL: redisPort ? `redis://127.0.0.1:${redisPort}` : '',
      USER_MANAGEMENT_CALLS_PER_MINUTE: String(calls),
      UNKNOWN_OUTCOME_GRACE_SECONDS: '1',
      SESSION_REFRESH_AFTER_SECONDS: '2',
      SESSION_REFRESH_EVERY_SECONDS: '2',
      ...env,
    };
    return new World(setting, folder, simulator, postgres, sqlPool, databaseProxy, redis, redisProxy, common, keeps);
  }

  /** Puts a load balancer before the processes, for whatever is sent from now on. */
  async balance(): Promise<Balancer> {
    this.balancer = await startBalancer(() => this.crew.receivers);
    return this.balancer;
  }

  /** Ports that requests to the service go to. */
  get receivers(): number[] {
    return this.balancer ? [this.balancer.port] : this.crew.receivers;
  }

  /** Starts a process that nobody watches. @param settings beside those that all have; PRELOAD is loaded before it */
  async startOne({ PRELOAD, ...settings }: Record<string, string | undefined>): Promise<Service> {
    const preloaded = ['dist/harness/stop-with-parent.js', ...(PRELOAD ? [PRELOAD] : [])];
    const program = await this.programs.start({
      file: 'dist/src/main.js',
      nodeArgs: preloaded.flatMap((file) => ['--require', path.resolve(file)]),
      env: { ...this.env, ...settings },
      ready: READY,
      ...(this.keeps && { keeps: this.keeps }),
    });
    return serviceOf(program, ADMIN_KEY, this.balancer?.url);
  }

  /** How many of what a whole run has `whole` of. */
  sized(whole: number, least = 1): number {
    return Math.max(least, Math.round(whole * this.setting.share));
  }

  /** Rows as they are, whatever the service's way to the database suffers; asked again while it is away. */
  async rows<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
    for (;;) {
      const found = await this.sqlPool.query(text, values).catch((error: { code?: string }) => {
        if (/^(22|23|42)/.test(error.code ?? '')) throw error;
        return undefined;
      });
      if (found) return found.rows as Row[];
      await delay(100);
    }
  }

  async count(from: string): Promise<number> {
    const [row] = await this.rows<{ n: number }>(`SELECT count(*)::int AS n FROM ${from}`);
    return row?.n ?? 0;
  }

  /** Work inside one transaction of a connection of its own, such as a lock that holds somebody up. */
  async holding(statement: string, work: () => Promise<void>): Promise<void> {
    const client = await this.sqlPool.connect();
    try {
      await client.query(`BEGIN; ${statement}`);
      await work();
    } finally {
      await client.query('ROLLBACK');
      client.release();
    }
  }

  /** Work on a dedicated connection, whose settings it may change. */
  async onConnection<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.sqlPool.connect();
    return work(client).finally(() => client.release(true));
  }

  /** Waits for what must come about, however late, and says now and then what is waited for. */
  async reach<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
    const saying = setInterval(() => this.setting.log(`… waiting until ${what}`), SAY_EVERY_MS);
    try {
      return await until(what, look);
    } finally {
      clearInterval(saying);
    }
  }

  arrivals(): number {
    return this.simulator.state.arrivals.list().length;
  }

  /** A moment within so many milliseconds, mostly while something is under way. */
  async soon(ms: number): Promise<void> {
    await delay(this.random.fraction() * ms);
  }

  /** Ends the run's own PostgreSQL, and starts it again at its port. */
  async endPostgres(signal: NodeJS.Signals): Promise<void> {
    killPostmaster(this.postgres.home, signal);
    await this.postgres.release();
    const port = Number(new URL(this.postgres.url).port);
    this.postgres = await startEmbeddedPostgres(path.join(this.folder, 'data'), [`port=${port}`]);
  }

  /** Restarts Redis, or PostgreSQL if the queues run on it. */
  async restartStore(): Promise<void> {
    if (!this.redis) return this.postgres.restart ? this.postgres.restart() : this.endPostgres('SIGINT');
    await this.redis.stop();
    await this.restartRedis();
  }

  /** Starts Redis again at its port, with nothing in it. */
  async restartRedis(): Promise<void> {
    if (!this.redis || !this.setting.redisServer) return;
    this.redis = await startRedis(this.setting.redisServer, this.folder, this.redis.port);
  }

  /** Sends the platform's webhooks to one of the receivers. */
  deliverWebhooks(): void {
    const { state } = this.simulator;
    state.settings = { ...state.settings, webhookUrl: `http://127.0.0.1:${this.receivers[0]}/webhooks/platform` };
  }

  async close(): Promise<void> {
    await this.balancer?.close();
    this.crew.dismiss();
    await this.programs.killAll();
    await this.simulator.close();
    await this.sqlPool.end();
    await this.databaseProxy.close();
    await this.redisProxy?.close();
    await this.redis?.stop('SIGKILL');
    await this.postgres.release();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const embedded = (folder: string) => startEmbeddedPostgres(path.join(folder, 'data'));

function contractWithout(folder: string, operations: readonly string[]): string {
  const contract = JSON.parse(readFileSync('simulator/contract.json', 'utf8')) as { operations: object };
  for (const operation of operations) Reflect.deleteProperty(contract.operations, operation);
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'contract.json');
  writeFileSync(file, JSON.stringify(contract));
  return file;
}
