import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { findRedisServer, startRedis } from '../harness/redis-server.js';
import { applyMigrations } from '../src/database/migrations.js';
import { type BenchRow, median } from './bench-row.js';
import { type ChildProgram, startChild } from './child-program.js';
import { cpuSeconds } from './cpu-seconds.js';
import { benchInbox } from './inbox.js';
import type { Floor } from './receiver-floor.js';
import type { LoadOrder, LoadReport } from './receiver-load.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { startService } from './service-process.js';

const SECRET = randomBytes(24).toString('hex');
const WARM_UP = { rounds: 1, seconds: 2, requests: 150_000 };
const FULL = { rounds: 3, seconds: 3, requests: 150_000 };
/** Deliveries per second for the latency comparison: busy, far from saturated. A pause of 10 ms affects a round's p99. */
const STEADY = { rounds: 7, seconds: 4, rate: 500, requests: 2_000 };

type Contestant = Floor | 'redis' | 'postgres';

const NAMES: Record<Contestant, string> = {
  hmac: 'floor: Fastify + HMAC, nothing stored',
  insert: 'floor: Fastify + HMAC + one INSERT a request',
  group: 'floor: Fastify + HMAC + group commit',
  redis: 'the service, queues on Redis',
  postgres: 'the service, queues on PostgreSQL',
};

interface Target {
  name: Contestant;
  port: number;
  /** Undefined for a floor, which has nothing left to do after its answers. */
  pid?: number;
  stop(): Promise<void>;
}

type Round = Pick<LoadOrder, 'seconds' | 'requests' | 'rate'> & { rounds: number };
type Reports = ReadonlyMap<Contestant, LoadReport[]>;

/**
 * Accepted deliveries per second, and the time to their answer, through the whole service (`ROLES=api`, with each store of
 * the queues) and three floors. All store the same row in one PostgreSQL with fsync on, in tables with the same indexes.
 * The contestants take turns, so that other load affects all of them; medians of the rounds are shown. Then what workers
 * process.
 */
export async function benchReceiver(): Promise<BenchRow[]> {
  const accepted = await withScratchPostgres(async (url, home) => {
    const started: { stop(): Promise<unknown> }[] = [];
    try {
      await makeTables(url);
      const load = await startChild('bench/receiver-load.js', {});
      started.push(load);
      const targets: Target[] = [];
      for (const floor of ['hmac', 'insert', 'group'] as const) targets.push(await startFloor(floor, url));
      const redisServer = findRedisServer();
      if (redisServer !== undefined) {
        const redis = await startRedis(redisServer, home);
        started.push(redis);
        targets.push(await startReceiver('redis', { DATABASE_URL: url, REDIS_URL: redis.url }));
      }
      targets.push(await startReceiver('postgres', { DATABASE_URL: url }));
      started.unshift(...targets);
      await takeTurns(load, targets, WARM_UP);
      const full = await takeTurns(load, targets, FULL);
      const committing = targets.filter(({ name }) => name !== 'hmac' && name !== 'insert');
      return [...throughputRows(full), ...latencyRows(await takeTurns(load, committing, STEADY))];
    } finally {
      for (const program of started) await program.stop();
    }
  });
  return [...accepted, ...(await benchInbox())];
}

async function makeTables(url: string): Promise<void> {
  await applyMigrations(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('CREATE TABLE bench_inbox (LIKE webhook_deliveries INCLUDING ALL)');
  await client.end();
}

async function startFloor(floor: Floor, url: string): Promise<Target> {
  const program = await startChild('bench/receiver-floor.js', { FLOOR: floor, SECRET, DATABASE_URL: url });
  const { port } = program.ready as { port: number };
  return { name: floor, port, stop: program.stop };
}

async function startReceiver(name: Contestant, stores: Record<string, string>): Promise<Target> {
  const { url, child, stop } = await startService({ ...stores, PLATFORM_WEBHOOK_SECRET: SECRET, ROLES: 'api' });
  return { name, port: Number(new URL(url).port), pid: child.pid, stop };
}

async function takeTurns(load: ChildProgram, targets: Target[], round: Round): Promise<Reports> {
  const reports = new Map<Contestant, LoadReport[]>();
  for (let taken = 0; taken < round.rounds; taken += 1) {
    for (const { name, port, pid } of targets) {
      const report = (await load.ask({ ...round, port, secret: SECRET } satisfies LoadOrder)) as LoadReport;
      if (report.refused > 0) throw new Error(`${NAMES[name]} rejected ${report.refused} genuine deliveries.`);
      reports.set(name, [...(reports.get(name) ?? []), report]);
      if (pid !== undefined) await isIdle(pid);
    }
  }
  return reports;
}

/** Resolves when the process has added its jobs, which may take longer than its answers. */
async function isIdle(pid: number): Promise<void> {
  for (let last = Number.NEGATIVE_INFINITY, now = await cpuSeconds(pid); now - last > 0.05; ) {
    last = now;
    await delay(500);
    now = await cpuSeconds(pid);
  }
}

const rate = (reports: LoadReport[] = []) => median(reports.map(({ accepted, seconds }) => accepted / seconds));

function throughputRows(reports: Reports): BenchRow[] {
  const over = (name: Contestant, floor: Floor) => rate(reports.get(name)) / rate(reports.get(floor));
  return [
    ...[...reports].map(([name, each]) => ({ name: `accepted, ${NAMES[name]}`, value: rate(each), unit: '1/s' })),
    ...servicesIn(reports).flatMap((name) => [
      atLeast(`accepted, ${NAMES[name]}, over the INSERT floor`, over(name, 'insert'), 1.5),
      atLeast(`accepted, ${NAMES[name]}, over the group commit floor`, over(name, 'group'), 0.5),
    ]),
  ];
}

function latencyRows(reports: Reports): BenchRow[] {
  const of = (name: Contestant, which: 'p50' | 'p99') =>
    median((reports.get(name) ?? []).map((report) => report[which]));
  return [
    ...[...reports.keys()].flatMap((name) => [
      { name: `answer at 500/s, ${NAMES[name]}: p50`, value: of(name, 'p50'), unit: 'ms' },
      { name: `answer at 500/s, ${NAMES[name]}: p99`, value: of(name, 'p99'), unit: 'ms' },
    ]),
    ...servicesIn(reports).map((name): BenchRow => {
      const ratio = of(name, 'p99') / of('group', 'p99');
      return { ...against(`p99 at 500/s, ${NAMES[name]}, over the floor`, ratio), target: '≤ 2', ok: ratio <= 2 };
    }),
  ];
}

const servicesIn = (reports: Reports) => [...reports.keys()].filter((name) => name === 'redis' || name === 'postgres');
const against = (name: string, ratio: number) => ({ name, value: ratio, unit: '×', ratio });
const atLeast = (name: string, ratio: number, least: number): BenchRow => {
  return { ...against(name, ratio), target: `≥ ${least}`, ok: ratio >= least };
};
