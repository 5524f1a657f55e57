import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { askRedis, findRedisServer, startRedis } from '../harness/redis-server.js';
import type { BenchRow } from './bench-row.js';
import { startChild } from './child-program.js';
import { additionSeconds, inProportion } from './machine.js';
import type { LoadOrder, LoadReport } from './receiver-load.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { startService } from './service-process.js';

/** Deliveries that arrive as fast as they are accepted, each the first one of another session. */
const DELIVERIES = Number(process.env.BENCH_ROWS ?? 10_000);
const WARM_UP = 500;
/** How long to look at most; the rate counts what was processed until then. */
const LOOK_MS = 20_000;
const SECRET = randomBytes(24).toString('hex');

/** Loses all jobs of the queues on PostgreSQL. */
const WIPE = 'TRUNCATE bullmq.meta, bullmq.job, bullmq.dedup, bullmq.dedup_next CASCADE';

/** A store of the queues. */
interface Backend {
  readonly name: string;
  readonly redisServer?: string;
  /** Minimum deliveries per second, in proportion to the machine. */
  readonly least: number;
}

/** A database with an empty queue, and what arrives there. */
interface Inbox {
  readonly client: pg.Client;
  startWorker(): Promise<{ stop(): Promise<void> }>;
  send(count: number): Promise<void>;
  /** Loses all jobs. */
  wipe(): Promise<unknown>;
}

/**
 * Deliveries per second that one worker process processes: while they arrive, and from a backlog whose jobs are lost. No
 * session is looked up, so that the inbox alone is measured.
 */
export async function benchInbox(): Promise<BenchRow[]> {
  const redisServer = findRedisServer();
  const seconds = additionSeconds();
  const backends: Backend[] = [
    ...(redisServer === undefined ? [] : [{ name: 'Redis', redisServer, least: 500 }]),
    { name: 'PostgreSQL', least: 100 },
  ];
  const rows: BenchRow[] = [{ name: 'the machine: 300 million additions', value: seconds, unit: 's' }];
  for (const { name, redisServer: program, least } of backends) {
    const target = Math.round(inProportion(least, seconds));
    const row = (what: string, value: number): BenchRow => {
      return { name: `inbox on ${name}, ${what}`, value, unit: '1/s', target: `≥ ${target}`, ok: value >= target };
    };
    const { arriving, backlog } = await withInbox(program, measure);
    rows.push(row('processed while they arrive', arriving), row('processed from a backlog without jobs', backlog));
  }
  return rows;
}

async function measure(inbox: Inbox) {
  const worker = await inbox.startWorker();
  await processedRate(inbox.client, () => inbox.send(WARM_UP));
  const arriving = await processedRate(inbox.client, () => inbox.send(DELIVERIES));
  await worker.stop();
  await inbox.send(DELIVERIES);
  await inbox.wipe();
  const next = await inbox.startWorker();
  const backlog = await processedRate(inbox.client, async () => undefined);
  await next.stop();
  return { arriving, backlog };
}

async function withInbox<T>(program: string | undefined, work: (inbox: Inbox) => Promise<T>): Promise<T> {
  return withScratchPostgres(async (url, home) => {
    const redis = program === undefined ? undefined : await startRedis(program, home);
    const settings = { PLATFORM_WEBHOOK_SECRET: SECRET, DATABASE_URL: url, ...(redis && { REDIS_URL: redis.url }) };
    const receiver = await startService({ ...settings, ROLES: 'api' });
    const load = await startChild('bench/receiver-load.js', {});
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const inbox: Inbox = {
      client,
      startWorker: () => startService({ ...settings, ROLES: 'worker' }),
      send: async (requests) => {
        const order = { port: Number(new URL(receiver.url).port), secret: SECRET, seconds: 60, requests };
        const { accepted } = (await load.ask(order satisfies LoadOrder)) as LoadReport;
        if (accepted < requests) throw new Error(`The receiver accepted ${accepted} of ${requests} deliveries.`);
      },
      wipe: () => (redis ? askRedis(redis.port, 'FLUSHALL') : client.query(WIPE)),
    };
    try {
      return await work(inbox);
    } finally {
      await client.end();
      await load.stop();
      await receiver.stop();
      await redis?.stop();
    }
  });
}

/** @param begin begins to deliver, from the time that counts */
async function processedRate(client: pg.Client, begin: () => Promise<void>): Promise<number> {
  const [start] = (await client.query<{ at: string }>('SELECT clock_timestamp()::text AS at')).rows;
  const end = performance.now() + LOOK_MS;
  await begin();
  while (performance.now() < end && (await isOpen(client))) await delay(100);
  const { rows } = await client.query<{ rate: number }>(
    `SELECT (count(*) / extract(epoch FROM max(processed_at) - $1::timestamptz))::float8 AS rate
     FROM webhook_deliveries WHERE state = 'processed' AND processed_at > $1`,
    [start?.at],
  );
  return rows[0]?.rate ?? 0;
}

async function isOpen(client: pg.Client): Promise<boolean> {
  return (await client.query('SELECT FROM webhook_deliveries WHERE due_at IS NOT NULL LIMIT 1')).rowCount === 1;
}
