import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import { type BenchRow, percentile } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

const ROWS = 100_000;
/** Pause between two people who are changed at a screen while the import is applied. */
const PAUSE_MS = 50;
/** Milliseconds within which a PUT is answered at the 95th percentile. */
const MOST_MS = 1_000;
const KEY = randomBytes(24).toString('hex');

/** How long a PUT of somebody whom an import holds takes while that import is applied; nothing is sent. */
export async function benchApply(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const settings = { ADMIN_API_KEY: KEY, DATABASE_URL: url };
    const [worker, api] = [
      await startService({ ...settings, ROLES: 'worker' }),
      await startService({ ...settings, ROLES: 'api' }),
    ];
    try {
      return await measure(api, url);
    } finally {
      await api.stop();
      await worker.stop();
    }
  });
}

async function measure(api: ServiceProcess, databaseUrl: string): Promise<BenchRow[]> {
  const headers = { authorization: `Bearer ${KEY}` };
  const lines = Array.from({ length: ROWS }, (_, n) => `R-${n},r-${n}@example.org,First ${n},Last ${n}\n`);
  const body = `externalId,email,firstName,lastName\n${lines.join('')}`;
  const sent = await fetch(`${api.url}/v1/imports?kind=providers`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'text/csv' },
    body,
  });
  const { id } = (await sent.json()) as ImportResponse;
  const database = new pg.Client({ connectionString: databaseUrl });
  await database.connect();
  const stage = async () => {
    const { rows } = await database.query<{ state: string; applying: boolean }>(
      `SELECT state, state = 'running' AND apply_wanted AS applying FROM imports WHERE id = $1`,
      [id],
    );
    return rows[0];
  };
  const waits: number[] = [];
  try {
    while ((await stage())?.state === 'staging') await delay(20);
    const begun = performance.now();
    for (let at = 0; (await stage())?.applying; at = (at + 7_919) % ROWS) {
      waits.push(await put(api.url, headers, at));
      await delay(PAUSE_MS);
    }
    const seconds = (performance.now() - begun) / 1_000;
    const p95 = percentile(waits, 0.95);
    const name = `PUT latency during apply of 100,000 rows, p95 of ${waits.length}`;
    return [
      { name, value: p95, unit: 'ms', target: `< ${MOST_MS}`, ok: p95 < MOST_MS },
      { name: '… at worst', value: Math.max(...waits), unit: 'ms' },
      { name: '… the apply, meanwhile', value: seconds, unit: 's' },
    ];
  } finally {
    await database.end();
  }
}

/** Milliseconds until somebody of the import was changed. */
async function put(url: string, headers: Record<string, string>, at: number): Promise<number> {
  const begun = performance.now();
  const response = await fetch(`${url}/v1/providers/R-${at}`, {
    method: 'PUT',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ email: `r-${at}@example.org`, firstName: 'First', lastName: 'Changed' }),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`A PUT was answered ${response.status}.`);
  return performance.now() - begun;
}
