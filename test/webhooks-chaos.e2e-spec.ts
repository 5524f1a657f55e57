import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { killPostmaster } from '../harness/postmaster.js';
import type { Program } from '../harness/program.js';
import { findRedisServer, type RedisServer, startRedis } from '../harness/redis-server.js';
import { until } from '../harness/until.js';
import { type Sent, WebhookSender } from '../harness/webhook-sender.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import { SESSION_EVENT_TYPES, type SessionEventType } from '../src/platform/wire-types.js';
import { usePrograms } from './support/programs.js';

const SEED = Number(process.env.SEED);
const DELIVERIES = 20_000;
const PROCESSES = 3;
const KILLS = 24;
const RESTARTS = 5;
const FLUSHES = 5;
/** Milliseconds over which the deliveries begin. */
const SPREAD_MS = 60_000;
const WORST_ANSWER_MS = 5_000;
const SECRET = 'webhook-secret-of-the-chaos';

/** What a session's events say in the end, whatever their order: they are final once COMPLETED was heard. */
const EVENTS: { eventType: SessionEventType; aiNotesEnabled: boolean | null }[] = [
  { eventType: 'SESSION_CREATED', aiNotesEnabled: null },
  { eventType: 'SESSION_PROCESSING_STARTED', aiNotesEnabled: false },
  { eventType: 'SESSION_PROCESSING_NOTES_COMPLETED', aiNotesEnabled: true },
  { eventType: 'SESSION_PROCESSING_COMPLETED', aiNotesEnabled: true },
];

const redisServer = findRedisServer();

describe('while processes are killed, PostgreSQL is restarted and Redis is flushed', () => {
  const start = usePrograms();
  const random = new SeededRandom(SEED);
  const pick = (below: number) => random.below(below);
  const folder = mkdtempSync(path.join(tmpdir(), 'notebridge-chaos-'));
  let postgres: EmbeddedPostgres;
  let redis: RedisServer | undefined;
  let sql: pg.Pool;
  let crew: Watched[] = [];

  beforeAll(async () => {
    chmodSync(folder, 0o711); // PostgreSQL may run as another user
    postgres = await startEmbeddedPostgres({ dataRoot: path.join(folder, 'data'), fsync: true });
    redis = redisServer ? await startRedis(redisServer, folder) : undefined;
    sql = new pg.Pool({ connectionString: postgres.url, max: 2 });
    sql.on('error', () => {});
  });

  afterEach(() => {
    for (const one of crew) one.dismiss();
  });

  afterAll(async () => {
    await sql?.end();
    await redis?.stop();
    await postgres?.release();
    rmSync(folder, { recursive: true, force: true });
  });

  const service = (port: number): Promise<Program> =>
    start({
      file: 'dist/src/main.js',
      ready: /"ready":true/,
      env: {
        PLATFORM_BASE_URL: 'http://127.0.0.1:1',
        PLATFORM_API_KEY: 'chaos',
        PLATFORM_WEBHOOK_SECRET: SECRET,
        ADMIN_API_KEY: 'admin-key-of-the-chaos',
        DATABASE_URL: postgres.url,
        REDIS_URL: redis?.url ?? '',
        DATA_KEYS: `k1:${Buffer.alloc(32, 9).toString('base64')}`,
        PORT: String(port),
      },
    });

  /** An immediate stop, as after a crash, or a fast one; whoever holds the server starts it again. */
  const restartPostgres = (signal: 'SIGQUIT' | 'SIGINT'): void => killPostmaster(postgres.home, signal);

  const rowsOf = async <T extends object>(text: string): Promise<T[]> => (await sql.query<T>(text)).rows;
  const countOf = async (where: string): Promise<number> =>
    (await rowsOf<{ n: number }>(`SELECT count(*)::int AS n FROM webhook_deliveries WHERE ${where}`))[0]?.n ?? -1;

  test(`${DELIVERIES} deliveries (seed ${SEED}): what was acknowledged is in the inbox, ends processed, and was answered in time`, async () => {
    const ports = await Promise.all(Array.from({ length: PROCESSES }, freePort));
    crew = ports.map((port) => new Watched(() => service(port)));
    await Promise.all(crew.map((one) => one.up()));

    const sender = new WebhookSender(SECRET, ports, random);
    const sending: Promise<Sent>[] = [];
    const begin = Date.now();
    const troubles = trouble({
      kill: () => crew[pick(crew.length)]?.kill() ?? Promise.resolve(false),
      restart: async () => restartPostgres(pick(2) === 0 ? 'SIGQUIT' : 'SIGINT'),
      flush: async () => redis && flushRedis(redis.port),
    });
    const bodies = shuffled(plannedBodies(), pick);
    for (const [index, body] of bodies.entries()) {
      const due = begin + (index / bodies.length) * SPREAD_MS;
      if (due > Date.now()) await delay(due - Date.now());
      sending.push(sender.deliver(body));
      if (pick(40) === 0) sending.push(sender.deliver(body)); // the same again, at the same or another moment
    }
    const sent = await Promise.all(sending);
    const done = await troubles;
    await Promise.all(crew.map((one) => one.up()));
    sender.close();

    await until('nothing is left to do', async () => (await countOf('due_at IS NOT NULL')) === 0);
    const kept = new Set(
      (await rowsOf<{ s: string }>("SELECT encode(signature, 'hex') AS s FROM webhook_deliveries")).map(({ s }) => s),
    );
    const acknowledged = sent.filter((one) => one.acknowledged);
    const lost = acknowledged.filter(({ signatures }) => !kept.has(signatures.at(-1) ?? ''));
    const worst = Math.max(...sent.map(({ slowest }) => slowest));
    const retried = sent.filter(({ tries }) => tries > 1).length;
    process.stderr.write(
      `\n${sent.length} sent, ${acknowledged.length} acknowledged, ${retried} retried, ${kept.size} rows, worst answer ` +
        `${Math.round(worst)} ms; ${done.kills} kills, ${done.restarts} restarts of PostgreSQL, ${done.flushes} flushes of Redis\n`,
    );

    expect(crew.flatMap(({ leftByItself }) => leftByItself)).toEqual([]);
    expect(lost).toEqual([]);
    expect(await countOf("state <> 'processed'")).toBe(0);
    expect(worst).toBeLessThan(WORST_ANSWER_MS);
    expect(acknowledged.length).toBeGreaterThan(0.95 * sent.length);
    expect(done).toEqual({ kills: KILLS, restarts: RESTARTS, flushes: redis ? FLUSHES : 0 });

    const sessions = new Map(
      (
        await rowsOf<{ id: string; state: string; notes: boolean; final: boolean; wanted: number }>(
          `SELECT session_id AS id, event_state AS state, ai_notes_enabled AS notes, ai_notes_final AS final,
                  wanted_generation AS wanted FROM sessions`,
        )
      ).map((row) => [row.id, row]),
    );
    const heard = new Map<string, Set<string>>();
    for (const { body } of acknowledged) {
      const { sessionId, eventType } = JSON.parse(body) as { sessionId: string; eventType: string };
      heard.set(sessionId, (heard.get(sessionId) ?? new Set()).add(eventType));
    }
    const wrong = [...heard].filter(([id, types]) => {
      const row = sessions.get(id);
      if (!row || row.wanted < types.size) return true;
      return types.size === EVENTS.length && !(row.state === 'Done' && row.notes && row.final);
    });
    expect(wrong).toEqual([]);
    expect([...SESSION_EVENT_TYPES]).toEqual(expect.arrayContaining(EVENTS.map(({ eventType }) => eventType)));
  });
});

/** A process that is started again whenever it ends, as a supervisor does. */
class Watched {
  /** The last lines of those that were ready and ended although nobody killed them. */
  readonly leftByItself: string[] = [];
  private running: Program | undefined;
  private starting: Promise<void> | undefined;
  private dismissed = false;

  constructor(private readonly start: () => Promise<Program>) {}

  /** Resolves when it is ready. */
  async up(): Promise<void> {
    while (!this.running && !this.dismissed) {
      this.starting ??= this.start()
        .then(
          (program) => this.watch(program),
          () => delay(100), // it needs PostgreSQL to start
        )
        .finally(() => {
          this.starting = undefined;
        });
      await this.starting;
    }
  }

  /** @returns false when it is not up */
  async kill(): Promise<boolean> {
    const program = this.running;
    if (!program) return false;
    this.running = undefined;
    await program.kill('SIGKILL');
    void this.up();
    return true;
  }

  /** Ends the watch; the process itself ends with the suite. */
  dismiss(): void {
    this.dismissed = true;
  }

  private watch(program: Program): void {
    this.running = program;
    void program.ended().then(() => {
      if (this.running !== program || this.dismissed) return;
      this.leftByItself.push(program.output().slice(-2_000));
      this.running = undefined;
      void this.up();
    });
  }
}

function plannedBodies(): string[] {
  return Array.from({ length: DELIVERIES }, (_, index) => {
    const event = EVENTS[index % EVENTS.length];
    return JSON.stringify({ ...event, sessionId: `s-${Math.floor(index / EVENTS.length)}`, providerUserId: 'p-1' });
  });
}

/** Events of one session come in any order, but close to each other. */
function shuffled(bodies: string[], pick: (below: number) => number): string[] {
  return bodies
    .map((body, index) => ({ body, place: index + pick(200) }))
    .sort((a, b) => a.place - b.place)
    .map(({ body }) => body);
}

interface Troubles {
  /** Answers whether there was something to kill. */
  kill(): Promise<boolean>;
  restart(): Promise<void>;
  flush(): Promise<unknown>;
}

/** Spreads the troubles over the time in which deliveries begin. */
async function trouble({ kill, restart, flush }: Troubles) {
  const done = { kills: 0, restarts: 0, flushes: 0 };
  const every = async (count: number, act: () => Promise<void>) => {
    for (let times = 0; times < count; times += 1) {
      await delay(SPREAD_MS / (count + 1));
      await act();
    }
  };
  await Promise.all([
    every(KILLS, async () => {
      await until('a process is up to be killed', kill);
      done.kills += 1;
    }),
    every(RESTARTS, async () => {
      await restart();
      done.restarts += 1;
    }),
    every(FLUSHES, async () => {
      if (await flush()) done.flushes += 1;
    }),
  ]);
  return done;
}

function flushRedis(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('FLUSHALL\r\n'));
    socket.once('error', reject).once('data', (answer) => {
      socket.destroy();
      resolve(answer.toString().startsWith('+OK'));
    });
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
