import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../harness/redis-server.js';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../simulator/app.js';
import { type BenchRow, percentile } from './bench-row.js';
import { cpuSeconds, postmasterOf } from './cpu-seconds.js';
import { type ServiceProcess, startService } from './service-process.js';

/** The platform's limit at full length (spec, Limits). */
const CALLS = 300;
const WINDOW_SECONDS = 60;
/** How many seconds to count, after one window in which the budget fills up. */
const COUNTED_SECONDS = 90;
const WORKERS = 2;
/** More people than the budget allows in that time, so that work is always pending. */
const PEOPLE = 1_000;
/** Up to 2 s, a random share of it before the call arrives. */
const SLOW: [number, number] = [20, 2_000];
/**
 * People that a user at a screen creates during the import, one after the other, and the pause between two. Each takes two
 * of the five calls that the limit allows per second.
 */
const SCREENS = 40;
const SCREEN_PAUSE_MS = 1_000;
/** The platform's latency during these, because the service's own delay is measured. */
const QUICK: [number, number] = [20, 120];
/** Maximum milliseconds of a waiting PUT from a screen, at the 95th percentile. */
const MAX_PUT_MS = 1_000;
const KEY = randomBytes(24).toString('hex');

/** Where the queues are, and the share of the call budget that must be used. */
interface Backend {
  readonly name: string;
  readonly redisServer?: string;
  readonly minShare: number;
}

/**
 * How much of the call budget two worker processes use while work is pending, with a strict platform that takes up to two
 * seconds per call, and whether any sliding minute exceeds the limit, on each store of the queues; Redis is wiped in the
 * middle. Then how long a PUT that overtakes all work takes.
 */
export async function benchBudget(): Promise<BenchRow[]> {
  const redisServer = findRedisServer();
  const backends: Backend[] = [
    ...(redisServer === undefined ? [] : [{ name: 'Redis', redisServer, minShare: 0.92 }]),
    { name: 'PostgreSQL', minShare: 0.88 },
  ];
  const rows: BenchRow[] = [];
  for (const backend of backends) rows.push(...(await benchBackend(backend)));
  return rows;
}

async function benchBackend({ name, redisServer, minShare }: Backend): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres(folder);
  const redis = redisServer === undefined ? undefined : await startRedis(redisServer, folder);
  const simulator = await buildSimulator({
    settings: { callsPerWindow: CALLS, windowSeconds: WINDOW_SECONDS, latencyMs: SLOW },
  });
  const running: ServiceProcess[] = [];
  try {
    const start = async (roles: string) => {
      const service = await startService({
        ROLES: roles,
        PLATFORM_BASE_URL: simulator.url,
        PLATFORM_API_KEY: DEFAULT_API_KEY,
        PLATFORM_CONTRACT: 'simulator/contract.json',
        ADMIN_API_KEY: KEY,
        DATABASE_URL: postgres.url,
        ...(redis && { REDIS_URL: redis.url }),
      });
      running.push(service);
      return service;
    };
    const [api] = await Promise.all([start('api'), ...Array.from({ length: WORKERS }, () => start('worker'))]);
    await importPeople(api.url);
    while (simulator.state.arrivals.list().length === 0) await delay(20);
    await delay(WINDOW_SECONDS * 1_000);
    const service = running.map(({ child }) => child.pid ?? 0);
    const stores = [await postmasterAt(postgres.url), ...(redis ? [redis.pid] : [])];
    const { used, cpu } = await countCalls(simulator, redis, [service, stores]);
    simulator.state.settings = { ...simulator.state.settings, latencyMs: QUICK };
    const p95 = percentile(await waitAtScreens(api.url), 0.95);
    if (!(await isImporting(api.url))) throw new Error('The import ended before the PUTs that should overtake it.');
    const { largestWindow, rateLimited } = simulator.state.arrivals.stats(WINDOW_SECONDS).userManagement;
    const share = used / ((CALLS * COUNTED_SECONDS) / WINDOW_SECONDS);
    const row = (what: string, value: number, unit: string, target?: string, ok?: boolean): BenchRow => {
      return { name: `${name}: ${what}`, value, unit, ...(target !== undefined && { target, ok: ok === true }) };
    };
    return [
      row('largest sliding minute', largestWindow.all, '', `≤ ${CALLS}`, largestWindow.all <= CALLS),
      row('429s', rateLimited, '', '0', rateLimited === 0),
      row('budget used while work is pending', share * 100, '%', `≥ ${minShare * 100}`, share >= minShare),
      row('waiting PUT during an import, p95', p95, 'ms', `≤ ${MAX_PUT_MS}`, p95 <= MAX_PUT_MS),
      row('CPU of the service per call', ((cpu[0] ?? 0) * 1_000) / used, 'ms'),
      row('CPU of the stores per call', ((cpu[1] ?? 0) * 1_000) / used, 'ms'),
    ];
  } finally {
    for (const service of running) await service.stop();
    await redis?.stop();
    await simulator.close();
    await postgres.release();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Counts calls, and the CPU seconds of each group of processes. Redis forgets everything halfway. */
async function countCalls(
  { state }: Simulator,
  redis: RedisServer | undefined,
  groups: number[][],
): Promise<{ used: number; cpu: number[] }> {
  const sum = (seconds: number[]) => seconds.reduce((total, one) => total + one, 0);
  const cpuSoFar = () => Promise.all(groups.map(async (pids) => sum(await Promise.all(pids.map(cpuSeconds)))));
  const [callsBefore, cpuBefore] = [state.arrivals.list().length, await cpuSoFar()];
  const begun = performance.now();
  await delay((COUNTED_SECONDS / 2) * 1_000);
  if (redis) await askRedis(redis.port, 'FLUSHALL');
  await delay(begun + COUNTED_SECONDS * 1_000 - performance.now());
  const cpu = (await cpuSoFar()).map((seconds, group) => seconds - (cpuBefore[group] ?? 0));
  return { used: state.arrivals.list().length - callsBefore, cpu };
}

async function postmasterAt(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return postmasterOf(client).finally(() => client.end());
}

async function importPeople(url: string): Promise<void> {
  const rows = Array.from({ length: PEOPLE }, (_, n) => `p-${n},p-${n}@example.org,Pia,N${n}`);
  const response = await fetch(`${url}/v1/imports?kind=providers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'text/csv' },
    body: ['externalId,email,firstName,lastName', ...rows].join('\n'),
  });
  if (response.status !== 202) throw new Error(`POST /v1/imports returned ${response.status}.`);
}

/** Milliseconds of a waiting PUT for each of some new people. */
async function waitAtScreens(url: string): Promise<number[]> {
  const waits: number[] = [];
  for (let screen = 0; screen < SCREENS; screen++) {
    waits.push(await waitAtScreen(url, screen, { authorization: `Bearer ${KEY}` }));
    await delay(SCREEN_PAUSE_MS);
  }
  return waits;
}

/** Milliseconds until a new provider is mirrored for someone who waits. @param screen makes another provider */
export async function waitAtScreen(url: string, screen: number, key: { authorization: string }): Promise<number> {
  const begun = performance.now();
  const response = await fetch(`${url}/v1/providers/now-${screen}`, {
    method: 'PUT',
    headers: { ...key, 'content-type': 'application/json', prefer: 'wait=60' },
    body: JSON.stringify({ email: `now-${screen}@example.org`, firstName: 'Pia', lastName: 'Ruiz' }),
  });
  if (response.status !== 200) throw new Error(`A PUT returned ${response.status}.`);
  await response.arrayBuffer();
  return performance.now() - begun;
}

async function isImporting(url: string): Promise<boolean> {
  const response = await fetch(`${url}/v1/providers?limit=1&state=pending`, {
    headers: { authorization: `Bearer ${KEY}` },
  });
  const { items } = (await response.json()) as { items: unknown[] };
  return items.length > 0;
}
