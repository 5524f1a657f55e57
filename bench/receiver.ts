import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';
import { applyMigrations } from '../src/database/migrations.js';
import { type BenchRow, median } from './bench-row.js';
import { type ChildProgram, startChild } from './child-program.js';
import type { Floor } from './receiver-floor.js';
import type { LoadOrder, LoadReport } from './receiver-load.js';
import { startService } from './service-process.js';

const SECRET = randomBytes(24).toString('hex');
const CONNECTIONS = 64;
const FULL = { rounds: 3, seconds: 3, requests: 150_000 };
/** Deliveries per second for the latency comparison: busy, far from saturated. A pause of 10 ms affects a round's p99. */
const STEADY = { rounds: 9, seconds: 4, rate: 1_000, requests: 4_000 };

const DRAIN = { warmUpMs: 5_000, ms: 10_000 };

type Contestant = Floor | 'service';

const NAMES: Record<Contestant, string> = {
  hmac: 'floor: Fastify + HMAC, nothing stored',
  insert: 'floor: Fastify + HMAC + one INSERT a request',
  group: 'floor: Fastify + HMAC + group commit',
  service: 'the service',
};

interface Target {
  name: Contestant;
  port: number;
  stop(): Promise<void>;
}

type Round = Pick<LoadOrder, 'seconds' | 'requests' | 'rate'>;
type Reports = Record<Contestant, LoadReport[]>;

/**
 * Accepted deliveries per second, and the time to their answer, through the whole service (`ROLES=api`) and three floors.
 * All store the same row in one PostgreSQL with fsync on, in tables with the same indexes. The contestants take turns, so
 * that other load affects all of them; medians of the rounds are shown. Then a worker empties the inbox.
 */
export async function benchReceiver(): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres(folder);
  const started: { stop(): Promise<void> }[] = [];
  try {
    await makeTables(postgres.url);
    const load = await startChild('bench/receiver-load.js', {});
    started.push(load);
    const targets: Target[] = [];
    for (const floor of ['hmac', 'insert', 'group'] as const) targets.push(await startFloor(floor, postgres.url));
    targets.push(await startReceiver(postgres.url));
    started.push(...targets);
    for (const target of targets) await send(load, target, { ...FULL, seconds: 2 });
    const full = await takeTurns(load, targets, FULL);
    const committing = targets.filter(({ name }) => name === 'group' || name === 'service');
    const steady = await takeTurns(load, committing, STEADY);
    const drained = await drainRate(postgres.url);
    const drain = {
      name: 'inbox, one worker: processed',
      value: drained,
      unit: '1/s',
      target: '≥ 300',
      ok: drained >= 300,
    };
    return [...throughputRows(full), ...latencyRows(steady), drain];
  } finally {
    for (const program of started) await program.stop();
    await postgres.release();
    await rm(folder, { recursive: true, force: true });
  }
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

async function startReceiver(url: string): Promise<Target> {
  const service = await startService({
    PLATFORM_WEBHOOK_SECRET: SECRET,
    DATABASE_URL: url,
    ROLES: 'api',
  });
  return { name: 'service', port: Number(new URL(service.url).port), stop: service.stop };
}

/** Deliveries per second that one worker processes from an inbox full of session events. */
async function drainRate(url: string): Promise<number> {
  const worker = await startService({ PLATFORM_WEBHOOK_SECRET: SECRET, DATABASE_URL: url, ROLES: 'worker' });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const processed = async () => {
      const { rows } = await client.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM webhook_deliveries WHERE state = 'processed'`,
      );
      return { count: rows[0]?.count ?? 0, at: performance.now() };
    };
    await delay(DRAIN.warmUpMs);
    const before = await processed();
    await delay(DRAIN.ms);
    const after = await processed();
    return (after.count - before.count) / ((after.at - before.at) / 1_000);
  } finally {
    await client.end();
    await worker.stop();
  }
}

function send(load: ChildProgram, target: Target, { seconds, rate, requests }: Round) {
  const whole: LoadOrder = {
    seconds,
    rate,
    requests,
    port: target.port,
    path: '/webhooks/platform',
    secret: SECRET,
    connections: CONNECTIONS,
  };
  return load.ask(whole) as Promise<LoadReport>;
}

async function takeTurns(load: ChildProgram, targets: Target[], round: Round & { rounds: number }): Promise<Reports> {
  const reports: Reports = { hmac: [], insert: [], group: [], service: [] };
  for (let taken = 0; taken < round.rounds; taken += 1) {
    for (const target of targets) {
      const report = await send(load, target, round);
      if (report.refused > 0) throw new Error(`${NAMES[target.name]} rejected ${report.refused} genuine deliveries.`);
      reports[target.name].push(report);
    }
  }
  return reports;
}

const rate = (reports: LoadReport[]) => median(reports.map(({ accepted, seconds }) => accepted / seconds));

function throughputRows(reports: Reports): BenchRow[] {
  const rows = (Object.keys(NAMES) as Contestant[]).map((name) => ({
    name: `receiver, ${NAMES[name]}: accepted`,
    value: rate(reports[name]),
    unit: '1/s',
  }));
  const overGroup = rate(reports.service) / rate(reports.group);
  const overInsert = rate(reports.service) / rate(reports.insert);
  return [
    ...rows,
    { ...against('the service over the group commit floor', overGroup), target: '≥ 0.75', ok: overGroup >= 0.75 },
    { ...against('the service over the INSERT floor', overInsert), target: '≥ 1.5', ok: overInsert >= 1.5 },
  ];
}

function latencyRows(reports: Reports): BenchRow[] {
  const p99 = (name: Contestant) => median(reports[name].map((report) => report.p99));
  const rows = (['group', 'service'] as const).flatMap((name) => [
    { name: `receiver at 1000/s, ${NAMES[name]}: p50`, value: median(reports[name].map((r) => r.p50)), unit: 'ms' },
    { name: `receiver at 1000/s, ${NAMES[name]}: p99`, value: p99(name), unit: 'ms' },
  ]);
  const ratio = p99('service') / p99('group');
  const name = 'p99 at 1000/s, the service over the group commit floor';
  return [...rows, { ...against(name, ratio), target: '≤ 1.5', ok: ratio <= 1.5 }];
}

const against = (name: string, ratio: number) => ({ name: `receiver, ${name}`, value: ratio, unit: '×', ratio });
