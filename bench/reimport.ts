import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { ImportResponse } from '../src/imports/api/import-view.js';
import { type BenchRow, median } from './bench-row.js';
import { peakMbDuring } from './big-upload.js';
import { bareReimport } from './reimport-floor.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

const ROWS = 100_000;
const MANY_ROWS = 1_000_000;
const ROUNDS = 5;
/** With sealing, times the floor. */
const MOST_RATIO = 3;
const MOST_PLAN_SECONDS = 15;
/** Taking back stays in proportion to wanting; it was hundreds of times as long when each person was looked for in all rows. */
const MOST_CANCEL_RATIO = 2;
const MOST_MB = 400;
/** V8 lets its old space grow by as much as the machine has, however little of it lives: within this bound it must do. */
const OLD_SPACE_MB = 256;
const LOOK_MS = 100;

const ADMIN_KEY = randomBytes(24).toString('hex');

/** Imports beside the least that they can be, on a durable PostgreSQL; nothing is sent, since nothing is configured. */
export async function benchReimport(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const rows = await withService(url, {}, (service) => measure(service, url));
    const bound = { NODE_OPTIONS: `--max-old-space-size=${OLD_SPACE_MB}` };
    return [...rows, await withService(url, bound, measureMemory)];
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

async function measureMemory(service: ServiceProcess): Promise<BenchRow> {
  const csv = csvOf(MANY_ROWS);
  const { peakMb } = await peakMbDuring(service.child.pid ?? 0, importSeconds(service, csv, 'dryRun=true', 'planned'));
  return {
    name: `1,000,000 rows read and planned in a heap of ${OLD_SPACE_MB} MB, peak memory`,
    value: peakMb,
    unit: 'MB',
    target: `< ${MOST_MB}`,
    ok: peakMb < MOST_MB,
  };
}

async function measure(service: ServiceProcess, databaseUrl: string): Promise<BenchRow[]> {
  const csv = csvOf(ROWS);
  const planSeconds = await importSeconds(service, csv, 'dryRun=true', 'planned');
  const running = await runSeconds(service, csv, databaseUrl);
  const cancelled = await cancelSeconds(service);
  await runSeconds(service, csv, databaseUrl);
  await pretendMirrored(databaseUrl);
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) {
    const floor = (await bareReimport(databaseUrl, csv)) / 1_000;
    rounds.push({ floor, service: await importSeconds(service, csv, '', 'completed') });
  }
  const ratio = median(rounds.map((round) => round.service / round.floor));
  return [
    {
      name: '100,000 new rows, from the first byte to the plan',
      value: planSeconds,
      unit: 's',
      target: `< ${MOST_PLAN_SECONDS}`,
      ok: planSeconds < MOST_PLAN_SECONDS,
    },
    { name: '… to the start of its run', value: running, unit: 's' },
    {
      name: 'cancelled then, as times of that, until everybody is taken back',
      value: cancelled / running,
      unit: '',
      ratio: cancelled / running,
      target: `≤ ${MOST_CANCEL_RATIO}`,
      ok: cancelled / running <= MOST_CANCEL_RATIO,
    },
    {
      name: '100,000 unchanged rows: parse, HMAC, COPY, diff',
      value: median(rounds.map((round) => round.floor)),
      unit: 's',
    },
    {
      name: '100,000 unchanged rows through the service, sealed',
      value: median(rounds.map((round) => round.service)),
      unit: 's',
    },
    {
      name: '… as times of the floor',
      value: ratio,
      unit: '',
      ratio,
      target: `≤ ${MOST_RATIO}`,
      ok: ratio <= MOST_RATIO,
    },
  ];
}

function csvOf(rows: number): Buffer<ArrayBuffer> {
  const lines = Array.from({ length: rows }, (_, n) => `R-${n},r-${n}@example.org,First ${n},Last ${n}\n`);
  return Buffer.from(`externalId,email,firstName,lastName\n${lines.join('')}`);
}

/** Seconds from the first byte until the import is where it is to be. */
async function importSeconds(
  service: ServiceProcess,
  csv: Buffer<ArrayBuffer>,
  query: string,
  state: string,
): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'text/csv', prefer: 'wait=1' };
  const begun = performance.now();
  const answer = await fetch(`${service.url}/v1/imports?kind=providers&${query}`, {
    method: 'POST',
    headers,
    body: csv,
  });
  let view = (await answer.json()) as ImportResponse;
  while (view.state !== state) {
    if (view.state === 'failed' || !answer.ok) throw new Error(`The import ended as ${view.state}.`);
    const look = await fetch(`${service.url}/v1/imports/${view.id}`, { headers });
    view = (await look.json()) as ImportResponse;
  }
  return (performance.now() - begun) / 1_000;
}

/** Seconds from the first byte until everybody is wanted, and may go. */
async function runSeconds(service: ServiceProcess, csv: Buffer<ArrayBuffer>, databaseUrl: string): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const begun = performance.now();
    await importSeconds(service, csv, '', 'running');
    while ((await client.query('SELECT 1 FROM imports WHERE apply_wanted')).rowCount) await delay(LOOK_MS);
    return (performance.now() - begun) / 1_000;
  } finally {
    await client.end();
  }
}

/** Seconds from the word to the end of the newest import, none of whose rows was sent. */
async function cancelSeconds(service: ServiceProcess): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}` };
  const show = async (path: string, method = 'GET') =>
    (await fetch(`${service.url}/v1/imports${path}`, { method, headers })).json();
  const { items } = (await show('?limit=1')) as { items: ImportResponse[] };
  const begun = performance.now();
  let view = (await show(`/${items[0]?.id}/cancel`, 'POST')) as ImportResponse;
  while (view.counts.pending > 0) {
    await delay(LOOK_MS); // counting again and again would take half the machine
    view = (await show(`/${view.id}`)) as ImportResponse;
  }
  if (view.state !== 'cancelled') throw new Error(`The import ended as ${view.state}.`);
  return (performance.now() - begun) / 1_000;
}

/** Puts the people into the state in which a mirror of five hours would have left them, and ends their import. */
async function pretendMirrored(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(
      `UPDATE people SET state = 'synced', step = NULL, due_at = NULL, platform_user_id = 'u-' || external_id,
         applied_profile = profile, origin = 'created'`,
    );
    await client.query('VACUUM ANALYZE');
  } finally {
    await client.end();
  }
}
