import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import path from 'node:path';
import pg from 'pg';
import { type BenchRow, median } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

const ADMIN_KEY = randomBytes(24).toString('hex');

/** Reads per round, and how many are in flight at the same time, as from a screen of an EHR. */
const READS = 2_000;
const CONCURRENCY = 16;
const ROUNDS = 7;
const MAX_RATIO = 1.5;

/** Entries of the audit log that a search for one client runs on. */
const ENTRIES = 1_000_000;
const CLIENTS = 10_000;
const LOOKS = 50;
const MAX_SEARCH_MS = 50;

/** How much an audit entry adds to the time of a read, and how long a search for the readers of one client takes. */
export async function benchAudit(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const settings = { ADMIN_API_KEY: ADMIN_KEY, DATABASE_URL: url, ROLES: 'api' };
    const service = await startService(settings);
    const preload = `--require=${path.resolve(__dirname, 'without-audit.js')}`;
    const silent = await startService({ ...settings, NODE_OPTIONS: preload });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await put(service);
      return [...(await costOfRead(service, silent)), ...(await timeOfLook(service, client))];
    } finally {
      await client.end();
      await silent.stop();
      await service.stop();
    }
  });
}

async function put({ url }: ServiceProcess): Promise<void> {
  const body = JSON.stringify({ email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' });
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
  const { status } = await fetch(`${url}/v1/providers/p-1`, { method: 'PUT', headers, body });
  if (status >= 300) throw new Error(`PUT of the provider returned ${status}.`);
}

async function costOfRead(service: ServiceProcess, silent: ServiceProcess): Promise<BenchRow[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
  const costs: Record<'with' | 'without', number[]> = { with: [], without: [] };
  for (let turn = 0; turn <= ROUNDS; turn++) {
    const taken = await round(() => readOnce(service.url, agent));
    const floor = await round(() => readOnce(silent.url, agent));
    if (turn === 0) continue; // until all code is compiled
    costs.with.push(taken);
    costs.without.push(floor);
  }
  agent.destroy();
  const [value, without] = [median(costs.with), median(costs.without)];
  const ratio = value / without;
  const target = { target: `≤ ${MAX_RATIO}`, ok: ratio <= MAX_RATIO };
  return [
    { name: `a read without an audit entry, ${CONCURRENCY} at a time`, value: without, unit: 'ms' },
    { name: 'a read with an audit entry before its answer', value, unit: 'ms' },
    { name: '… compared with a read without an entry', value: ratio, unit: '×', ...target },
  ];
}

/** Milliseconds per read: the time of a round divided by its reads. */
async function round(read: () => Promise<void>): Promise<number> {
  const begun = performance.now();
  let left = READS;
  const reader = async () => {
    while (left-- > 0) await read();
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, reader));
  return (performance.now() - begun) / READS;
}

function readOnce(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    request(`${url}/v1/providers/p-1`, { agent, headers }, (answer) => {
      answer.resume().once('end', resolve).once('error', reject);
      if (answer.statusCode !== 200) reject(new Error(`A read returned ${answer.statusCode}.`));
    })
      .once('error', reject)
      .end();
  });
}

/** The tables are not analysed, so their statistics are those of empty tables. */
async function timeOfLook({ url }: ServiceProcess, client: pg.Client): Promise<BenchRow[]> {
  await client.query('ALTER SYSTEM SET autovacuum = off');
  await client.query('SELECT pg_reload_conf()');
  await client.query(
    `INSERT INTO audit_entries (uid, at, key_id, key_name, action, outcome, mac)
     SELECT gen_random_uuid(), now(), 'k', 'k', 'GET /v1/sessions/:id/notes', 'ok', '' FROM generate_series(1, $1)`,
    [ENTRIES],
  );
  await client.query(
    `INSERT INTO audit_subjects (entry, kind, subject)
     SELECT id, kind, kind || '-' || id % (CASE kind WHEN 'provider' THEN 100 ELSE $1 END)
     FROM audit_entries, unnest('{client,provider,session}'::text[]) AS kind ON CONFLICT DO NOTHING`,
    [CLIENTS],
  );
  // Every tenth request read a list with a hundredth of the clients.
  await client.query(
    `INSERT INTO audit_ranges (entry, kind, count, first, last)
     SELECT id, 'client', 100, 'client-' || id % 90 + 10 || '00', 'client-' || id % 90 + 10 || '99'
     FROM audit_entries WHERE id % 10 = 0`,
  );
  const times: number[] = [];
  for (let look = 0; look < LOOKS; look++) {
    const begun = performance.now();
    const headers = { authorization: `Bearer ${ADMIN_KEY}` };
    const answer = await fetch(`${url}/v1/audit?client=client-${(look * 37) % CLIENTS}`, { headers });
    const { items } = (await answer.json()) as { items: unknown[] };
    times.push(performance.now() - begun);
    if (items.length < 50) throw new Error(`Only ${items.length} entries about a client were found.`);
  }
  const value = median(times);
  const name = `search for the readers of a client, ${ENTRIES.toLocaleString('en')} entries`;
  return [{ name, value, unit: 'ms', target: `≤ ${MAX_SEARCH_MS}`, ok: value <= MAX_SEARCH_MS }];
}
