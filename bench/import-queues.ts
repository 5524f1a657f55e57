import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';
import { findRedisServer, startRedis } from '../harness/redis-server.js';
import { buildSimulator, DEFAULT_API_KEY } from '../simulator/app.js';
import { OPERATIONS } from '../src/people/rules/person.js';
import { DUE } from '../src/people/store/due-people.repository.js';
import { type BenchRow, percentile } from './bench-row.js';
import { waitAtScreen } from './budget.js';
import { type ServiceProcess, startService } from './service-process.js';

/** Rows of each of the two imports: the largest that are accepted. */
const ROWS = Number(process.env.BENCH_ROWS ?? 250_000);
/** The pause between two users at a screen, because each takes two of the five calls that the limit allows per second. */
const SCREEN_PAUSE_MS = 1_000;
/** Maximum milliseconds of a round of the feeder, and of a waiting PUT at the 95th percentile. */
const MAX_ROUND_MS = 20;
const MAX_PUT_MS = 1_000;
const KEY = randomBytes(24).toString('hex');
const HEADERS = { authorization: `Bearer ${KEY}` };

/** How long people at a screen and the feeder wait while an import is applied, and another one is paused with as many people. */
export async function benchImportQueues(): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres(folder);
  const redisServer = findRedisServer();
  const redis = redisServer === undefined ? undefined : await startRedis(redisServer, folder);
  const simulator = await buildSimulator({
    settings: { callsPerWindow: 300, windowSeconds: 60, latencyMs: [20, 120] },
  });
  const client = new pg.Client({ connectionString: postgres.url });
  const running: ServiceProcess[] = [];
  try {
    await client.connect();
    for (const roles of ['api', 'worker']) {
      const settings = { PLATFORM_BASE_URL: simulator.url, PLATFORM_API_KEY: DEFAULT_API_KEY, ADMIN_API_KEY: KEY };
      const stores = { DATABASE_URL: postgres.url, ...(redis && { REDIS_URL: redis.url }) };
      const contract = { PLATFORM_CONTRACT: 'simulator/contract.json' };
      running.push(await startService({ ROLES: roles, ...settings, ...contract, ...stores }));
    }
    const url = running[0]?.url ?? '';
    await put(`${url}/v1/providers/p-1`);
    const paused = await upload(url, 'a');
    await applied(client, paused);
    await fetch(`${url}/v1/imports/${paused}/pause`, { method: 'POST', headers: HEADERS });
    const begun = performance.now();
    const id = await upload(url, 'b');
    const uploaded = performance.now();
    const { waits, rounds } = await watch(client, url, id);
    const seconds = (performance.now() - uploaded) / 1_000;
    const people = (await client.query<{ n: number }>('SELECT count(*)::int AS n FROM people WHERE due_at IS NOT NULL'))
      .rows[0];
    const row = (name: string, value: number, unit: string, max?: number): BenchRow => {
      return { name, value, unit, ...(max !== undefined && { target: `≤ ${max}`, ok: value <= max }) };
    };
    return [
      row('people that are due at the end', people?.n ?? 0, ''),
      row('upload of an import', (uploaded - begun) / 1_000, 's'),
      row('plan and application', seconds, 's'),
      row('round of the feeder, p95', percentile(rounds, 0.95), 'ms', MAX_ROUND_MS),
      row('waiting PUT, p50', percentile(waits, 0.5), 'ms'),
      row('waiting PUT, p95', percentile(waits, 0.95), 'ms', MAX_PUT_MS),
    ];
  } finally {
    await client.end();
    for (const service of running) await service.stop();
    await redis?.stop();
    await simulator.close();
    await postgres.release();
    await rm(folder, { recursive: true, force: true });
  }
}

async function put(url: string): Promise<void> {
  const body = JSON.stringify({ email: 'p-1@example.org', firstName: 'Pia', lastName: 'Ruiz' });
  const headers = { ...HEADERS, 'content-type': 'application/json', prefer: 'wait=60' };
  const { status } = await fetch(url, { method: 'PUT', headers, body });
  if (status !== 200) throw new Error(`A PUT returned ${status}.`);
}

/** @returns the id of the import */
async function upload(url: string, name: string): Promise<string> {
  const lines = Array.from({ length: ROWS }, (_, n) => `${name}-${n},${name}-${n}@example.org,Cleo,N${n},p-1`);
  const response = await fetch(`${url}/v1/imports?kind=clients`, {
    ...{ method: 'POST', headers: { ...HEADERS, 'content-type': 'text/csv' } },
    body: ['externalId,email,firstName,lastName,providers', ...lines].join('\n'),
  });
  const { id } = (await response.json()) as { id: string };
  if (response.status !== 202) throw new Error(`POST /v1/imports returned ${response.status}.`);
  return id;
}

async function isApplied(client: pg.Client, id: string): Promise<boolean> {
  const { rows } = await client.query<{ state: string; isOpen: boolean }>(
    `SELECT state, EXISTS (SELECT FROM import_rows WHERE import_id = $1 AND phase IS NOT NULL) AS "isOpen" FROM imports WHERE id = $1`,
    [id],
  );
  return rows[0]?.state === 'running' && !rows[0].isOpen;
}

async function applied(client: pg.Client, id: string): Promise<void> {
  while (!(await isApplied(client, id))) await delay(200);
}

/** Watches rounds of the feeder and people at a screen until an import is applied. */
async function watch(client: pg.Client, url: string, id: string) {
  const waits: number[] = [];
  const rounds: number[] = [];
  for (let screen = 0; !(await isApplied(client, id)); screen += 1) {
    waits.push(await waitAtScreen(url, screen, HEADERS));
    const begun = performance.now();
    await client.query(DUE, [OPERATIONS]);
    rounds.push(performance.now() - begun);
    await delay(SCREEN_PAUSE_MS);
  }
  return { waits, rounds };
}
