import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';
import { buildSimulator, DEFAULT_API_KEY } from '../simulator/app.js';
import { type BenchRow, percentile } from './bench-row.js';
import { startService } from './service-process.js';

/** The platform's limit at full length (spec, Limits). */
const CALLS = 300;
const WINDOW_SECONDS = 60;
/** How many seconds to count, after one window in which the budget fills up. */
const COUNTED_SECONDS = 90;
const WORKERS = 3;
/** More people than the budget allows in that time, so that work is always pending. */
const PEOPLE = 1_000;
/**
 * People that a user at a screen creates during the import, one after the other, and the pause between two. Each takes two
 * of the five calls that the limit allows per second.
 */
const SCREENS = 40;
const SCREEN_PAUSE_MS = 1_000;
/** The platform's latency during these, because the service's own delay is measured. */
const QUICK: [number, number] = [20, 120];
/** Maximum milliseconds of a waiting PUT from a screen, at the 95th percentile. */
const MAX_PUT_MS = 250;
const KEY = randomBytes(24).toString('hex');

/**
 * How much of the call budget three worker processes use while work is pending, with a strict simulator that takes up to
 * a second per call, and whether any sliding minute exceeds the limit; then how long a PUT that overtakes all work takes.
 */
export async function benchBudget(): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres(folder);
  const simulator = await buildSimulator({
    settings: { callsPerWindow: CALLS, windowSeconds: WINDOW_SECONDS, latencyMs: [20, 1_000] },
  });
  const running: { stop(): Promise<void> }[] = [];
  try {
    const start = async (roles: string) => {
      const service = await startService({
        ROLES: roles,
        PLATFORM_BASE_URL: simulator.url,
        PLATFORM_API_KEY: DEFAULT_API_KEY,
        PLATFORM_CONTRACT: 'simulator/contract.json',
        ADMIN_API_KEY: KEY,
        DATABASE_URL: postgres.url,
      });
      running.push(service);
      return service;
    };
    const [api] = await Promise.all([start('api'), ...Array.from({ length: WORKERS }, () => start('worker'))]);
    await importPeople(api.url);
    while (simulator.state.arrivals.list().length === 0) await delay(20);
    await delay(WINDOW_SECONDS * 1_000);
    const before = simulator.state.arrivals.list().length;
    await delay(COUNTED_SECONDS * 1_000);
    const used = simulator.state.arrivals.list().length - before;
    simulator.state.settings = { ...simulator.state.settings, latencyMs: QUICK };
    const waits = await waitAtScreens(api.url);
    if (!(await isImporting(api.url))) throw new Error('The import ended before the PUTs that should overtake it.');
    const { largestWindow, rateLimited } = simulator.state.arrivals.stats(WINDOW_SECONDS).userManagement;
    const share = used / ((CALLS * COUNTED_SECONDS) / WINDOW_SECONDS);
    const p95 = percentile(waits, 0.95);
    return [
      {
        name: 'call budget used while work is pending',
        value: share * 100,
        unit: '%',
        target: '≥ 99',
        ok: share >= 0.99,
      },
      {
        name: 'waiting PUT during an import, p95',
        value: p95,
        unit: 'ms',
        target: '< 250',
        ok: p95 < MAX_PUT_MS,
      },
      {
        name: 'largest sliding minute',
        value: largestWindow.all,
        unit: '',
        target: '≤ 300',
        ok: largestWindow.all <= CALLS,
      },
      { name: '429s', value: rateLimited, unit: '', target: '0', ok: rateLimited === 0 },
    ];
  } finally {
    for (const service of running) await service.stop();
    await simulator.close();
    await postgres.release();
    await rm(folder, { recursive: true, force: true });
  }
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
    const begun = performance.now();
    const response = await fetch(`${url}/v1/providers/now-${screen}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', prefer: 'wait=60' },
      body: JSON.stringify({ email: `now-${screen}@example.org`, firstName: 'Pia', lastName: 'Ruiz' }),
    });
    waits.push(performance.now() - begun);
    if (response.status !== 200) throw new Error(`A PUT returned ${response.status}.`);
    await response.arrayBuffer();
    await delay(SCREEN_PAUSE_MS);
  }
  return waits;
}

async function isImporting(url: string): Promise<boolean> {
  const response = await fetch(`${url}/v1/providers?limit=1&state=pending`, {
    headers: { authorization: `Bearer ${KEY}` },
  });
  const { items } = (await response.json()) as { items: unknown[] };
  return items.length > 0;
}
