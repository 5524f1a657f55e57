import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { ImportResponse } from '../src/imports/api/import-view.js';
import { type BenchRow, median, percentile } from './bench-row.js';
import { peakMbDuring } from './big-upload.js';
import { bareReimport } from './reimport-floor.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

const ROWS = 100_000;
const NEW_ROWS = 30_000;
const MANY_ROWS = 1_000_000;
const ROUNDS = 5;
const MAX_RATIO = 2.5;
const MAX_START_SECONDS = 15;
const MAX_PUT_MS = 250;
const MAX_MB = 350;
/** Heap of the process that reads a million rows. V8 lets it grow as far as the machine allows, even if little is in use. */
const HEAP_MB = 256;
/** PUTs during an import, and the pause between two. */
const PUTS = 100;
const PUT_PAUSE_MS = 50;
const POLL_MS = 100;

const ADMIN_KEY = randomBytes(24).toString('hex');
const AUTHORIZATION = { authorization: `Bearer ${ADMIN_KEY}` };

/** Imports into a durable PostgreSQL. Nothing is sent, because no platform is configured. */
export async function benchReimport(): Promise<BenchRow[]> {
  const first = await withScratchPostgres(async (url) => {
    await query(url, 'ALTER SYSTEM SET autovacuum = off');
    await query(url, 'SELECT pg_reload_conf()');
    return withService(url, {}, measureStart);
  });
  return withScratchPostgres(async (url) => {
    const rows = await withService(url, {}, (service) => measureReimport(service, url));
    const heap = { NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}` };
    return [...first, ...rows, await withService(url, heap, measureMemory)];
  });
}

async function withService<T>(
  databaseUrl: string,
  settings: Record<string, string>,
  work: (service: ServiceProcess) => Promise<T>,
): Promise<T> {
  const service = await startService({ ADMIN_API_KEY: ADMIN_KEY, DATABASE_URL: databaseUrl, ...settings });
  try {
    return await work(service);
  } finally {
    await service.stop();
  }
}

/** An empty database without autovacuum: how soon clients start, and how fast concurrent PUTs are. */
async function measureStart(service: ServiceProcess): Promise<BenchRow[]> {
  await put(service, 'providers/P', { email: 'p@example.org' });
  const seconds = await secondsUntil(service, clientsCsv('A', NEW_ROWS), '', 'running');
  const importing = secondsUntil(service, clientsCsv('B', ROWS), '', 'running');
  const putsMs: number[] = [];
  for (let count = 0; count < PUTS; count++) {
    const began = performance.now();
    await put(service, `clients/I-${count}`, { providers: ['P'] });
    putsMs.push(performance.now() - began);
    await delay(PUT_PAUSE_MS);
  }
  await importing;
  const p95 = percentile(putsMs, 0.95);
  return [
    {
      name: '30,000 new clients into an empty database without autovacuum, until they start',
      value: seconds,
      unit: 's',
      target: `≤ ${MAX_START_SECONDS}`,
      ok: seconds <= MAX_START_SECONDS,
    },
    {
      name: 'PUT during an import of 100,000 rows, p95',
      value: p95,
      unit: 'ms',
      target: `< ${MAX_PUT_MS}`,
      ok: p95 < MAX_PUT_MS,
    },
  ];
}

async function measureReimport(service: ServiceProcess, databaseUrl: string): Promise<BenchRow[]> {
  const csv = providersCsv(ROWS);
  const planSeconds = await secondsUntil(service, csv, 'dryRun=true', 'planned');
  await cancelNewest(service);
  await secondsUntil(service, csv, '', 'running');
  while (
    (await query(
      databaseUrl,
      'SELECT FROM import_rows i WHERE phase = 1 AND import_id = (SELECT id FROM imports ORDER BY opened_at DESC LIMIT 1) LIMIT 1',
    )) > 0
  ) {
    await delay(POLL_MS);
  }
  await pretendMirrored(databaseUrl);
  const rounds: { floor: number; service: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const floor = (await bareReimport(databaseUrl, csv)) / 1_000;
    rounds.push({ floor, service: await secondsUntil(service, csv, '', 'completed') });
  }
  const ratio = median(rounds.map((round) => round.service / round.floor));
  const seconds = (of: 'floor' | 'service') => median(rounds.map((round) => round[of]));
  return [
    { name: '100,000 new rows, from the first byte to the plan', value: planSeconds, unit: 's' },
    { name: '100,000 unchanged rows: parse, HMAC, COPY, diff', value: seconds('floor'), unit: 's' },
    { name: '100,000 unchanged rows through the service', value: seconds('service'), unit: 's' },
    {
      name: '… as times of the floor',
      value: ratio,
      unit: '',
      ratio,
      target: `≤ ${MAX_RATIO}`,
      ok: ratio <= MAX_RATIO,
    },
  ];
}

async function measureMemory(service: ServiceProcess): Promise<BenchRow> {
  const reading = secondsUntil(service, providersCsv(MANY_ROWS), 'dryRun=true', 'planned');
  const { peakMb } = await peakMbDuring(service.child.pid ?? 0, reading);
  return {
    name: `1,000,000 rows read and planned in a heap of ${HEAP_MB} MB, peak memory`,
    value: peakMb,
    unit: 'MB',
    target: `< ${MAX_MB}`,
    ok: peakMb < MAX_MB,
  };
}

function providersCsv(rows: number): Buffer<ArrayBuffer> {
  const lines = Array.from({ length: rows }, (_, n) => `R-${n},r-${n}@example.org,First ${n},Last ${n}\n`);
  return Buffer.from(`externalId,email,firstName,lastName\n${lines.join('')}`);
}

function clientsCsv(prefix: string, rows: number): Buffer<ArrayBuffer> {
  const lines = Array.from(
    { length: rows },
    (_, n) => `${prefix}-${n},${prefix}-${n}@example.org,First ${n},Last ${prefix}${n},P\n`,
  );
  return Buffer.from(`externalId,email,firstName,lastName,providers\n${lines.join('')}`);
}

/** Seconds from the first byte until an import is in a state. */
async function secondsUntil(
  service: ServiceProcess,
  csv: Buffer<ArrayBuffer>,
  parameters: string,
  state: ImportResponse['state'],
): Promise<number> {
  const kind = csv.includes('providers') ? 'clients' : 'providers';
  const headers = { ...AUTHORIZATION, 'content-type': 'text/csv', prefer: 'wait=1' };
  const began = performance.now();
  const url = `${service.url}/v1/imports`;
  const answer = await fetch(`${url}?kind=${kind}&${parameters}`, { method: 'POST', headers, body: csv });
  let view = (await answer.json()) as ImportResponse;
  while (view.state !== state) {
    if (view.state === 'failed' || !answer.ok) throw new Error(`The import ended as ${view.state}.`);
    view = (await (await fetch(`${url}/${view.id}`, { headers })).json()) as ImportResponse;
  }
  return (performance.now() - began) / 1_000;
}

/** Cancels the newest import: an open plan that names the same people makes re-imports keep their content. */
async function cancelNewest(service: ServiceProcess): Promise<void> {
  const newest = await fetch(`${service.url}/v1/imports?limit=1`, { headers: AUTHORIZATION });
  const { items } = (await newest.json()) as { items: ImportResponse[] };
  const url = `${service.url}/v1/imports/${items[0]?.id}`;
  await fetch(`${url}/cancel`, { method: 'POST', headers: AUTHORIZATION });
  let isPending = true;
  while (isPending) {
    await delay(POLL_MS);
    const view = (await (await fetch(url, { headers: AUTHORIZATION })).json()) as ImportResponse;
    isPending = view.finishedAt === null;
  }
}

async function put(service: ServiceProcess, path: string, more: object): Promise<void> {
  const headers = { ...AUTHORIZATION, 'content-type': 'application/json' };
  const body = JSON.stringify({ firstName: 'Ida', lastName: 'Ives', ...more });
  const answer = await fetch(`${service.url}/v1/${path}`, { method: 'PUT', headers, body });
  if (!answer.ok) throw new Error(`PUT ${path} returned ${answer.status}.`);
}

/** Sets people to the state after hours of syncing. */
async function pretendMirrored(databaseUrl: string): Promise<void> {
  await query(
    databaseUrl,
    `UPDATE people SET state = 'synced', step = NULL, due_at = NULL, platform_user_id = 'u-' || external_id,
       applied_profile = profile, origin = 'created'`,
  );
  await query(databaseUrl, 'VACUUM ANALYZE');
}

/** @returns the number of rows */
async function query(databaseUrl: string, sql: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query(sql)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}
