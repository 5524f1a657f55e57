import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';
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
import { emptyCounts } from './counts.js';
import { Ehr } from './ehr.js';
import { Oracle } from './oracle.js';
import { ProcessGroup } from './process-group.js';

export const ADMIN_KEY = 'admin-key-of-the-notebridge-faults';
export const WEBHOOK_SECRET = 'webhook-secret-of-the-faults';
export const DATA_KEY = `k1:${Buffer.alloc(32, 9).toString('base64')}`;

/** How often to log what a long wait is for. */
const LOG_INTERVAL_MS = 30_000;

/** The parameters of one run of a scenario. */
export interface Setting {
  /** Seed of all random choices. */
  readonly seed: number;
  /** The share of the whole scenario to run, in (0, 1]. */
  readonly share: number;
  /** The redis-server program, if the queues should run on Redis. */
  readonly redisServer?: string;
  /** Starts a PostgreSQL other than the embedded one. */
  readonly startPostgres?: (folder: string) => Promise<PostgresServer>;
  readonly log: (line: string) => void;
  /** Gets a function that ends the run and everything that it started, for an interrupt. */
  readonly onOpen?: (close: () => Promise<void>) => void;
}

/** The requirements of a scenario for its world. */
export interface Wanted {
  readonly platform?: Partial<Settings>;
  /** Limit of user-management calls per minute, on both sides. */
  readonly calls?: number;
  /** Operations that the contract file leaves out. */
  readonly without?: readonly string[];
  readonly env?: Record<string, string>;
  /** Minimum of characters of a process's output to keep. Defaults to all. */
  readonly keeps?: number;
  /** Without proxies for PostgreSQL and Redis, because they cost this process time for each statement. */
  readonly direct?: boolean;
}

/** A platform, a PostgreSQL, perhaps a Redis, and the processes of the service, which reach both through a proxy. */
export class World {
  readonly oracle = new Oracle();
  readonly counts = emptyCounts();
  readonly random: SeededRandom;
  readonly processes: ProcessGroup;
  readonly ehr: Ehr;
  private balancer: Balancer | undefined;
  private readonly programs = new Programs();

  private constructor(
    readonly setting: Setting,
    /** Holds the files of PostgreSQL and Redis. */
    readonly folder: string,
    readonly simulator: Simulator,
    /** Replaced by a restart. */
    public postgres: PostgresServer,
    /** Connects without the proxy, for checks from outside. */
    private readonly sqlPool: pg.Pool,
    readonly databaseProxy: TcpProxy,
    /** Present when the queues run on Redis; replaced by a restart. */
    public redis: RedisServer | undefined,
    readonly redisProxy: TcpProxy | undefined,
    private readonly env: Record<string, string>,
    private readonly keeps: number | undefined,
  ) {
    this.random = new SeededRandom(setting.seed);
    this.processes = new ProcessGroup((settings) => this.startOne(settings), this.random, this.counts);
    this.ehr = new Ehr(
      () => this.receivers.map((port) => `http://127.0.0.1:${port}`),
      ADMIN_KEY,
      this.random,
      this.counts,
    );
  }

  /** @param wanted what differs from the default world */
  static async open(
    setting: Setting,
    { platform, calls = 900, without = [], env, keeps, direct }: Wanted = {},
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
      MALLOC_ARENA_MAX: '2', // as in the Dockerfile
      ...env,
    };
    return new World(setting, folder, simulator, postgres, sqlPool, databaseProxy, redis, redisProxy, common, keeps);
  }

  /** Puts a load balancer in front of the processes, for all later requests. */
  async balance(): Promise<Balancer> {
    this.balancer = await startBalancer(() => this.processes.receivers);
    return this.balancer;
  }

  /** Ports for requests to the service. */
  get receivers(): number[] {
    return this.balancer ? [this.balancer.port] : this.processes.receivers;
  }

  /** Starts an unsupervised process. @param settings in addition to the common ones; PRELOAD is loaded before it */
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

  /** The share of this run of `whole` things, at least `least`. */
  sized(whole: number, least = 1): number {
    return Math.max(least, Math.round(whole * this.setting.share));
  }

  /** Reads rows past the service's proxy, and retries while PostgreSQL is unavailable. */
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

  /** Works inside an open transaction of another connection, such as one that holds a lock. */
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

  /** Works on a dedicated connection, whose settings it may change. */
  async onConnection<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.sqlPool.connect();
    return work(client).finally(() => client.release(true));
  }

  /** Waits without a timeout until a condition holds, and logs from time to time what it waits for. */
  async reach<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
    const saying = setInterval(() => this.setting.log(`… waiting until ${what}`), LOG_INTERVAL_MS);
    try {
      return await until(what, look);
    } finally {
      clearInterval(saying);
    }
  }

  arrivals(): number {
    return this.simulator.state.arrivals.list().length;
  }

  /** Waits for a random time of up to this many milliseconds. */
  async soon(ms: number): Promise<void> {
    await delay(this.random.fraction() * ms);
  }

  /** Stops the run's own PostgreSQL, and restarts it at its port. */
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

  /** Restarts Redis at its port, empty. */
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
    this.processes.stopSupervising();
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
