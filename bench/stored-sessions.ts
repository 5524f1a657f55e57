import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../simulator/app.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import { type BenchRow, median } from './bench-row.js';
import { cpuSeconds, postmasterOf } from './cpu-seconds.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { type ServiceProcess, startService } from './service-process.js';

const SIZES = [1_000, 100_000, 1_000_000];
const ROUNDS = 5;
/** Sessions per round, each with four events and one or two fetches. */
const ARRIVING = 100;
const MAX_RATIO = 1.5;

const PROVIDERS = 1_000;
const CLIENTS = 100_000;
/** One in this many stored sessions ended in an error. */
const RARE = 50_000;
const LISTS = 30;
const MAX_LIST_MS = 20;

const [ADMIN_KEY, SECRET] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')];

/** The measured parts: the service, the sending platform, and the database. */
interface Bench {
  service: ServiceProcess;
  simulator: Simulator;
  client: pg.Client;
  postmaster: number;
}

/**
 * The CPU of an event and the time of a list when many sessions are stored. Their table is not analysed, so its
 * statistics are those of an empty table.
 */
export async function benchStoredSessions(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const simulator = await buildSimulator({
      settings: { stepMs: 0, processingEvents: false, webhookSecret: SECRET, webhookTimeoutMs: 60_000 },
    });
    const service = await startService({
      PLATFORM_BASE_URL: simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_CONTRACT: 'simulator/contract.json',
      PLATFORM_WEBHOOK_SECRET: SECRET,
      ADMIN_API_KEY: ADMIN_KEY,
      DATABASE_URL: url,
    });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
      await client.query('ALTER SYSTEM SET autovacuum = off');
      await client.query('SELECT pg_reload_conf()');
      return await measure({ service, simulator, client, postmaster: await postmasterOf(client) });
    } finally {
      await client.end();
      await service.stop();
      await simulator.close();
    }
  });
}

async function measure(bench: Bench): Promise<BenchRow[]> {
  await storePeople(bench.client);
  const costs: number[] = [];
  for (const [at, size] of SIZES.entries()) {
    await storeSessions(bench.client, SIZES[at - 1] ?? 0, size);
    await costPerEvent(bench); // without one-time lookups of the service
    const rounds = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push(await costPerEvent(bench));
    costs.push(median(rounds));
  }
  const ratio = (costs.at(-1) ?? Number.NaN) / (costs[0] ?? Number.NaN);
  return [
    ...costs.map((cost, at) => ({
      name: `an event with its share of the lookups, ${SIZES[at]?.toLocaleString('en')} sessions stored: CPU`,
      value: cost * 1_000,
      unit: 'ms',
    })),
    {
      name: '… the last compared with the first',
      value: ratio,
      unit: '×',
      target: `≤ ${MAX_RATIO}`,
      ok: ratio <= MAX_RATIO,
    },
    await listRow(bench.service, 'of a provider', 'provider=p-7'),
    await listRow(bench.service, 'of a client', 'client=c-77'),
    await listRow(bench.service, 'of sessions in a rare state', 'state=Error'),
    await listRow(bench.service, 'of one appointment', 'appointment=visit-777'),
    await listRow(bench.service, 'of all', ''),
  ];
}

async function storePeople(client: pg.Client): Promise<void> {
  for (const [kind, count] of [
    ['provider', PROVIDERS],
    ['client', CLIENTS],
  ] as const) {
    await client.query(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, state, platform_user_id)
       SELECT gen_random_uuid(), $1::person_kind, $3 || '-' || n, '', '', 'synced', $3 || n
       FROM generate_series(0, $2::int - 1) n`,
      [kind, count, kind[0]],
    );
  }
}

/** Inserts old sessions that are done: most need no lookup, one in ten needs one next month. */
async function storeSessions(client: pg.Client, from: number, to: number): Promise<void> {
  await client.query(
    `INSERT INTO sessions (id, session_id, state, state_from, provider_user_id, client_user_ids, ever_client_user_ids, partner_appointment_id,
       event_state, published_end, changes, fetched_changes, fetched_at, due_at, created_at, updated_at)
     SELECT id, 'old-' || n, state, 'platform', 'p' || n % $4, ARRAY['c' || n % $5], ARRAY['c' || n % $5], 'visit-' || n,
       'Done', state, 4, 4, at, CASE WHEN n % 10 = 0 THEN now() + interval '30 days' END,
       at, at
     FROM (SELECT n, gen_random_uuid() AS id, CASE WHEN n % $3 = 0 THEN 'Error' ELSE 'Done' END AS state,
       now() - interval '400 days' + n * interval '30 seconds' AS at
       FROM generate_series($1::int, $2::int - 1) n) old`,
    [from, to, RARE, PROVIDERS, CLIENTS],
  );
}

/** Sends webhooks of sessions and waits until they are fetched. @returns seconds of CPU per event */
async function costPerEvent({ service, simulator, client, postmaster }: Bench): Promise<number> {
  const { state } = simulator;
  const cpu = async () => (await cpuSeconds(postmaster)) + (await cpuSeconds(service.child.pid ?? 0));
  const deliveriesBefore = state.deliveries.list().length;
  const before = await cpu();
  const ids = Array.from({ length: ARRIVING }, () => {
    const session = createSession(state, {
      providerUserId: 'p7',
      clientUserIds: ['c77'],
      noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
      input: { kind: 'text', text: 'We talked about the week.' },
      date: '2026-03-01T09:00:00.000Z',
    });
    while (session.nextStep) takeStep(state, session);
    return session.sessionId;
  });
  await state.deliveries.settled();
  while ((await open(client, ids)) > 0) await delay(20);
  return ((await cpu()) - before) / (state.deliveries.list().length - deliveriesBefore);
}

/**
 * Counts the sessions that are not fetched yet. It reads each by its own id: with one list of ids, the planner would read
 * all done sessions, and that query would cost more than the measured work.
 */
async function open(client: pg.Client, ids: string[]): Promise<number> {
  const { rows } = await client.query<{ open: number }>(
    `SELECT count(*)::int AS open FROM unnest($1::text[]) AS arrived (id)
     LEFT JOIN LATERAL (
       SELECT state, fetched_changes >= changes AS fetched FROM sessions WHERE session_id = arrived.id OFFSET 0
     ) AS stored ON true
     WHERE (state = 'Done' AND fetched) IS NOT TRUE`,
    [ids],
  );
  return rows[0]?.open ?? 0;
}

async function listRow({ url }: ServiceProcess, of: string, query: string): Promise<BenchRow> {
  const times: number[] = [];
  for (let n = 0; n < LISTS; n++) {
    const begun = performance.now();
    const answer = await fetch(`${url}/v1/sessions?${query}`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
    const { items } = (await answer.json()) as { items?: unknown[] };
    times.push(performance.now() - begun);
    if (!items?.length) throw new Error(`The list ${of} returned ${answer.status} without items.`);
  }
  const value = median(times);
  return {
    name: `a list ${of}, a million sessions stored`,
    value,
    unit: 'ms',
    target: `< ${MAX_LIST_MS}`,
    ok: value < MAX_LIST_MS,
  };
}
