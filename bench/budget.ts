import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { buildSimulator, DEFAULT_API_KEY } from '../simulator/app.js';
import { startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import type { BenchRow } from './bench-row.js';
import { startService } from './service-process.js';

/** The platform's limit at full length (spec, Limits). */
const CALLS = 300;
const WINDOW_SECONDS = 60;
/** Seconds that are counted, after one window in which the budget fills up. */
const COUNTED_SECONDS = 90;
const WORKERS = 3;
/** More than can be done meanwhile: work always waits. */
const PEOPLE = 1_000;
const KEY = 'bench-admin-key-1234';

/**
 * How much of the budget three worker processes use while work waits, against the strict simulator with answers of up
 * to a second, and whether any sliding minute of its exceeds the limit.
 */
export async function benchBudget(): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres({ dataRoot: folder, fsync: true });
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
        PLATFORM_WEBHOOK_SECRET: 'unused',
        ADMIN_API_KEY: KEY,
        DATABASE_URL: postgres.url,
        DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
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
    const { largestWindow, rateLimited } = simulator.state.arrivals.stats(WINDOW_SECONDS).userManagement;
    const share = used / ((CALLS * COUNTED_SECONDS) / WINDOW_SECONDS);
    return [
      { name: 'budget used while work waits', value: share * 100, unit: '%', target: '≥ 97', ok: share >= 0.97 },
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
  if (response.status !== 202) throw new Error(`The import was answered ${response.status}.`);
}
