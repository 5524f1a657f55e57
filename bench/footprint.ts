import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { until } from '../harness/until.js';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../simulator/app.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import type { BenchRow } from './bench-row.js';
import { cpuSeconds, postmasterOf } from './cpu-seconds.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

const CLIENTS = 1_000;
const PROVIDERS = 20;
const SESSIONS = 250;
const PLANNED_ROWS = 20_000;
/** How long to wait until the start and its garbage collections are over. */
const START_SECONDS = 15;
const IDLE_SECONDS = 60;

/** Maximum share of one core that an idle process may use. */
const MAX_IDLE_PERCENT = 1.5;

/** Maximum memory of an idle process with both roles. */
const MAX_IDLE_MIB = 180;

/** Maximum seconds of CPU until a process is ready, without the migrations of an empty database. */
const MAX_START_SECONDS = 1.5;

/** Higher than the service's pace, so that the platform's limit does not affect the measurement. */
const CALLS_PER_MINUTE = 60_000;

/** Tables that the RETENTION_ settings limit. */
const HISTORY = /^(platform_calls|webhook_|feed_events|import|idempotency|handed_out)/;

const [ADMIN_KEY, SECRET] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')];

/** Bytes of tables with their indexes, by the kind of limit. */
type Size = Record<'data' | 'history' | 'audit', number>;

/** Memory and CPU of one process, and its disk space. None of it depends on elapsed time. */
export async function benchFootprint(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const simulator = await buildSimulator({
      settings: {
        stepMs: 0,
        processingEvents: false,
        webhookSecret: SECRET,
        webhookTimeoutMs: 60_000,
        callsPerWindow: CALLS_PER_MINUTE,
      },
    });
    const settings = {
      PLATFORM_BASE_URL: simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_CONTRACT: 'simulator/contract.json',
      PLATFORM_WEBHOOK_SECRET: SECRET,
      ADMIN_API_KEY: ADMIN_KEY,
      DATABASE_URL: url,
      USER_MANAGEMENT_CALLS_PER_MINUTE: String(CALLS_PER_MINUTE),
    };
    const first = await startService(settings);
    await first.stop();
    const service = await startService(settings);
    const start = await cpuSeconds(service.child.pid ?? 0);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
      return [upTo('CPU of a start', start, MAX_START_SECONDS, 's'), ...(await measure(service, simulator, client))];
    } finally {
      await client.end();
      await service.stop();
      await simulator.close();
    }
  });
}

async function measure(service: ServiceProcess, simulator: Simulator, client: pg.Client): Promise<BenchRow[]> {
  const pid = service.child.pid ?? 0;
  const postmaster = await postmasterOf(client);
  const rows: BenchRow[] = [];

  await delay(START_SECONDS * 1_000);
  const idle = await spent(pid, postmaster, () => delay(IDLE_SECONDS * 1_000));
  const share = (100 * idle.service) / IDLE_SECONDS;
  rows.push(upTo('an idle process with both roles: memory', await memory(pid, 'VmRSS'), MAX_IDLE_MIB, 'MiB'));
  rows.push(upTo('… CPU of the service, of one core', share, MAX_IDLE_PERCENT, '%'));
  rows.push({ name: '… CPU of PostgreSQL', value: (100 * idle.postgres) / IDLE_SECONDS, unit: '%' });

  const empty = await sizes(client);
  const mirroring = await spent(pid, postmaster, async () => {
    await upload(service, 'kind=providers', people('p', PROVIDERS));
    await upload(service, 'kind=clients', people('c', CLIENTS));
    await until('everyone is synced', async () => {
      const { rows } = await client.query(`SELECT count(*)::int AS count FROM people WHERE state = 'synced'`);
      return rows[0].count === CLIENTS + PROVIDERS;
    });
  });
  const calls = (await client.query('SELECT count(*)::int AS count FROM platform_calls')).rows[0].count;
  const perCall = (seconds: number) => (1_000 * seconds) / calls;
  rows.push({ name: 'a synced client: CPU of the service, per call', value: perCall(mirroring.service), unit: 'ms' });
  rows.push({ name: '… CPU of PostgreSQL, per call', value: perCall(mirroring.postgres), unit: 'ms' });
  const mirrored = await sizes(client);
  rows.push(...diskRows('a client, imported and created', empty, mirrored, CLIENTS + PROVIDERS));

  let notes = 0;
  const fetching = await spent(pid, postmaster, async () => {
    notes = await holdSessions(simulator, client);
  });
  const held = await sizes(client);
  const words = `a session with ${notes.toLocaleString('en')} characters of notes, and its four deliveries`;
  rows.push(...diskRows(words, mirrored, held, SESSIONS));
  rows.push({ name: `${words}: CPU of the service`, value: (1_000 * fetching.service) / SESSIONS, unit: 'ms' });
  rows.push({ name: '… CPU of PostgreSQL', value: (1_000 * fetching.postgres) / SESSIONS, unit: 'ms' });

  const planning = await spent(pid, postmaster, async () => {
    const id = await upload(service, 'kind=clients&dryRun=true', people('d', PLANNED_ROWS));
    await until('it is planned', () => isNone(client, `imports WHERE id = '${id}' AND state <> 'planned'`));
  });
  const planned = (seconds: number) => (1_000 * seconds) / PLANNED_ROWS;
  rows.push({ name: 'a row of a planned import: CPU of the service', value: planned(planning.service), unit: 'ms' });
  rows.push({ name: '… CPU of PostgreSQL', value: planned(planning.postgres), unit: 'ms' });
  rows.push({ name: 'maximum memory of the process', value: await memory(pid, 'VmHWM'), unit: 'MiB' });
  return rows;
}

/** A row whose value may be at most `max`. */
const upTo = (name: string, value: number, max: number, unit: string): BenchRow => ({
  name,
  value,
  unit,
  target: `≤ ${max} ${unit}`,
  ok: value <= max,
});

/** Seconds of CPU that the service and PostgreSQL spend during `work`. */
async function spent(pid: number, postmaster: number, work: () => Promise<unknown>) {
  const before = [await cpuSeconds(pid), await cpuSeconds(postmaster)] as const;
  await work();
  const after = [await cpuSeconds(pid), await cpuSeconds(postmaster)] as const;
  return { service: after[0] - before[0], postgres: after[1] - before[1] };
}

function diskRows(name: string, from: Size, to: Size, count: number): BenchRow[] {
  const grown = (kind: keyof Size) => (to[kind] - from[kind]) / count;
  return [
    { name: `${name}: disk, kept`, value: grown('data'), unit: 'B' },
    { name: '… disk, history', value: grown('history'), unit: 'B' },
    { name: '… disk, audit log', value: grown('audit'), unit: 'B' },
  ];
}

/** MiB, of proc(5), /proc/pid/status. */
async function memory(pid: number, field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const [, kib] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1_024;
}

/** Measures without dead rows, whose space autovacuum reuses. */
async function sizes(client: pg.Client): Promise<Size> {
  await client.query('VACUUM FULL');
  const { rows } = await client.query<{ name: string; bytes: number }>(
    `SELECT relname AS name, pg_total_relation_size(oid)::float8 AS bytes FROM pg_class
     WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace`,
  );
  const size: Size = { data: 0, history: 0, audit: 0 };
  for (const { name, bytes } of rows) {
    const kind = name.startsWith('audit_') ? 'audit' : HISTORY.test(name) ? 'history' : 'data';
    size[kind] += bytes;
  }
  return size;
}

const people = (prefix: string, count: number): string =>
  [
    'externalId,email,firstName,lastName,providers',
    ...Array.from({ length: count }, (_, n) => {
      const providers = prefix === 'p' ? '' : `p-${n % PROVIDERS}`;
      return `${prefix}-${n},${prefix}-${n}@example.org,Given${n},Family${n},${providers}`;
    }),
  ].join('\n');

async function upload({ url }: ServiceProcess, query: string, body: string): Promise<string> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'text/csv', prefer: 'wait=0' };
  const answer = await fetch(`${url}/v1/imports?${query}`, { method: 'POST', headers, body });
  if (answer.status !== 202) throw new Error(`POST /v1/imports returned ${answer.status}.`);
  return ((await answer.json()) as { id: string }).id;
}

/** Waits for sessions announced by webhooks and fetched with notes. @returns characters of the notes of one */
async function holdSessions(simulator: Simulator, client: pg.Client): Promise<number> {
  const { state } = simulator;
  let characters = 0;
  for (let n = 0; n < SESSIONS; n++) {
    const session = createSession(state, {
      providerUserId: 'p7',
      clientUserIds: ['c77'],
      noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
      input: { kind: 'text', text: 'We talked about the week, about sleep and about what helps. '.repeat(20) },
      date: '2026-03-01T09:00:00.000Z',
    });
    while (session.nextStep) takeStep(state, session);
    const notes = [...session.documents.values()].flatMap((document) => document.notes);
    characters = notes.reduce((sum, { text }) => sum + text.length, 0);
  }
  await state.deliveries.settled();
  await until('all sessions are fetched', async () => {
    const open = `sessions WHERE (state = 'Done' AND fetched_changes >= changes) IS NOT TRUE`;
    const { rowCount } = await client.query('SELECT 1 FROM session_documents');
    return rowCount === SESSIONS && (await isNone(client, open));
  });
  await until('all deliveries are handled', () => isNone(client, 'webhook_deliveries WHERE due_at IS NOT NULL'));
  return characters;
}

const isNone = async (client: pg.Client, what: string): Promise<boolean> =>
  (await client.query(`SELECT 1 FROM ${what} LIMIT 1`)).rowCount === 0;
