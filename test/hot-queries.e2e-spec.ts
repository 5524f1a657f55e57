import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/database/embedded-postgres.js';
import { applyMigrations } from '../src/database/migrations.js';
import type { FeedEvent } from '../src/feed/feed-event.js';
import type { Page } from '../src/http/page.js';
import type { ImportView } from '../src/imports/import-view.js';
import type { SessionView } from '../src/sessions/session-view.js';
import { explainEverything, loggedPlans, logSize, OBSERVER } from './support/auto-explain.js';
import { createDatabase } from './support/databases.js';
import { asIfThereWere, fullReadsIn, multiply } from './support/query-plans.js';
import { ADMIN_KEY, type Mirror, useMirrors, WEBHOOK_SECRET } from './support/service.js';

const MILLION = 1_000_000;
const COPIES = 100;
const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';

/** What grows with the years; the other tables hold settings, or what is under way. */
const GROWING = [
  'people',
  'client_providers',
  'email_claims',
  'platform_users',
  'platform_calls',
  'import_rows',
  'import_cells',
  'audit_entries',
  'idempotency_records',
  'sessions',
  'session_documents',
  'document_revisions',
  'session_insights',
  'session_requests',
  'processing_sessions',
  'processing_notices',
  'compliance_jobs',
  'webhook_deliveries',
  'feed_events',
];

// Before the hooks of the mirrors, which drop the database.
afterAll(() => admin?.end());
/** Count everybody: once for the plan of an import, and now and then for the metrics, not at each scrape. */
const RARE = [
  'SELECT kind, count(*)::int AS people FROM people WHERE wanted GROUP BY kind',
  'count(*)::int AS people, count(*) FILTER',
];

/** Hold what is still to be done alone. */
const SMALL = [
  'import_rows_open_person_idx',
  'people_step_refused_at_idx',
  'people_lane_step_due_at_idx',
  'sessions_backlog_idx',
  'webhook_deliveries_due_at_idx',
  'sessions_due_idx',
];

const newMirror = useMirrors();
let folder: string;
let postgres: EmbeddedPostgres;
let admin: pg.Client;
let mirror: Mirror;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'notebridge-plans-'));
  postgres = await startEmbeddedPostgres({ dataRoot: folder, fsync: false });
  const database = await createDatabase(postgres.url);
  await applyMigrations(database.url);
  mirror = await newMirror({
    database,
    platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET },
    env: { REDIS_URL: undefined },
  });
  admin = new pg.Client({ connectionString: database.url, application_name: OBSERVER });
  await admin.connect();
});
afterAll(async () => {
  await postgres?.release();
  await rm(folder, { recursive: true, force: true });
});

/** A day of everybody who uses the service. @param day tells its ids from another's */
async function live(service: Service, day: string, people: number, sessions: number): Promise<void> {
  const { state } = mirror.simulator;
  state.settings = { ...state.settings, webhookUrl: `${service.url}/webhooks/platform` };
  await mirrorPeople(service, day, people);
  await holdSessions(service, day, sessions);
  await checkDocuments(service);
  await state.deliveries.settled();
  for (const what of [
    'webhook_deliveries WHERE due_at IS NOT NULL',
    'sessions WHERE due_at < now() OR news_at IS NOT NULL',
    'people WHERE due_at IS NOT NULL',
  ]) {
    await until(`nothing is left of ${what}`, async () => {
      return (await admin.query(`SELECT 1 FROM ${what} LIMIT 1`)).rowCount === 0;
    });
  }
}

async function mirrorPeople(service: Service, day: string, people: number): Promise<void> {
  const ids = Array.from({ length: people }, (_, n) => `${day}-${n}`);
  const providers = ids.map((id) => `p-${id},p-${id}@example.org,Pia,N${id}`);
  const clients = ids.map((id) => `c-${id},c-${id}@example.org,Cleo,N${id},p-${id}`);
  const csv = (name: string, lines: string[]) => ({ name, type: 'text/csv', content: lines.join('\n') });
  const files = [
    csv('providers.csv', ['externalId,email,firstName,lastName', ...providers]),
    csv('clients.csv', ['externalId,email,firstName,lastName,providers', ...clients, 'c-wrong,no mail,C,W,p-0']),
  ];
  const { id } = await service.startImport('kind=clients', files);
  expect((await service.importEnded(id)).state).toBe('completed');
  const read = async (path: string) => service.call<Page<unknown>>('GET', path);
  await read(`/v1/imports/${id}`);
  await read(`/v1/imports/${id}/rows?outcome=rejected`);
  await read('/v1/imports');
  const dry = await service.startImport('kind=clients&dryRun=true', files);
  await until('it is planned', async () => {
    return (await service.call<ImportView>('GET', `/v1/imports/${dry.id}`, { wait: 1 })).body.state === 'planned';
  });
  await service.call('POST', `/v1/imports/${dry.id}/cancel`);

  const person = (id: string) => ({ email: `${id}@example.org`, firstName: 'Ada', lastName: 'Osei' });
  await service.call('PUT', `/v1/providers/p-${day}`, { body: person(`p-${day}`), wait: 20 });
  const client = { ...person(`c-${day}`), providers: [`p-${day}`] };
  await service.call('PUT', `/v1/clients/c-${day}`, { body: client, wait: 20 });
  await service.call('PUT', `/v1/clients/c-${day}/providers`, { body: { providers: [`p-${day}-1`] }, wait: 20 });
  await service.call('DELETE', `/v1/clients/c-${day}-3`, { wait: 20 });
  await service.call('GET', `/v1/clients/c-${day}`);
  for (const list of [
    'clients?limit=20',
    'clients?state=failed',
    'clients?state=synced&limit=20',
    'providers?limit=20',
    'people/stuck',
  ]) {
    await read(`/v1/${list}`);
  }
  await service.call('POST', '/v1/people/search', { body: { email: `c-${day}-1@example.org` } });
  await service.call('POST', '/v1/people/trace', { body: { kind: 'client', externalId: `c-${day}-1` } });
}

async function holdSessions(service: Service, day: string, sessions: number): Promise<void> {
  const { state } = mirror.simulator;
  const [someone] = mirror.usersOf(`p-${day}-1`);
  const [client] = mirror.usersOf(`c-${day}-1`);
  for (let n = 0; n < sessions; n++) {
    const users = [mirror.usersOf(`p-${day}-${n % 20}`)[0], mirror.usersOf(`c-${day}-${n % 20}`)[0]];
    const session = createSession(state, {
      providerUserId: users[0]?.userId ?? someone?.userId ?? '',
      clientUserIds: [users[1]?.userId ?? client?.userId ?? ''],
      noteTemplateIds: [TEMPLATE],
      input: { kind: 'text', text: 'They spoke of the week.' },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: `visit-${day}-${n}`,
    });
    session.willFail = n % 10 === 9;
    while (session.nextStep) takeStep(state, session);
  }
  const input = { text: { text: 'They spoke of the week.' } };
  const body = {
    provider: `p-${day}-1`,
    noteTemplateIds: [TEMPLATE],
    input,
    partnerAppointmentId: `asked-${day}`,
  };
  const asked = await service.call<SessionView>('POST', '/v1/sessions', { body, wait: 20, idempotencyKey: day });
  expect([200, 201, 202]).toContain(asked.status);
  const made = state.sessions.list().at(-1);
  while (made?.nextStep) takeStep(state, made);
  await until('it is done', async () => {
    const { body: view } = await service.call<SessionView>('GET', `/v1/sessions/${asked.body.id}`);
    return view.state === 'Done';
  });
  for (const part of ['', '/notes', '/transcript', '/insights']) {
    await service.call('GET', `/v1/sessions/${asked.body.id}${part}`);
  }
  const update = { partnerAppointmentId: `moved-${day}` };
  await service.call('PATCH', `/v1/sessions/${asked.body.id}`, { body: update });
  await service.call('POST', '/v1/sessions/refreshes', { body: { session: asked.body.id } });
  await service.call('GET', '/v1/sessions/refreshes');
  for (const query of [
    '',
    `provider=p-${day}-1`,
    `client=c-${day}-1`,
    'state=Error',
    'state=Unknown',
    `appointment=visit-${day}-1`,
    `updatedSince=${new Date().toISOString()}`,
  ]) {
    await service.call('GET', `/v1/sessions?${query}`);
  }
}

async function checkDocuments(service: Service): Promise<void> {
  const { state } = mirror.simulator;
  const form = new FormData();
  form.append('files', new Blob([PDF], { type: 'application/pdf' }), 'notes.pdf');
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, prefer: 'wait=0' };
  const answer = await fetch(`${service.url}/v1/compliance/jobs`, { method: 'POST', headers, body: form });
  const { id } = (await answer.json()) as { id: string };
  await until('the job is submitted', async () => {
    const { body } = await service.call<{ state: string }>('GET', `/v1/compliance/jobs/${id}`);
    return body.state === 'Submitted';
  });
  for (const job of state.complianceJobs.values()) job.status = 'completed';
  for (const jobId of state.complianceJobs.keys()) {
    state.deliveries.send({ eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId } });
  }
  await service.call('GET', '/v1/compliance/jobs');
  await service.call('GET', '/v1/compliance/jobs?state=Unknown');
}

/** Whoever watches: the feed, the deliveries, the audit trail, health and figures. */
async function watch(service: Service): Promise<void> {
  const { body } = await service.call<Page<FeedEvent>>('GET', '/v1/events?limit=5');
  await service.call('GET', `/v1/events?after=${body.items.at(-1)?.cursor}`);
  await service.call('GET', '/v1/webhook-deliveries');
  await service.call('GET', '/v1/webhook-deliveries?state=failed');
  await service.call('GET', '/v1/webhook-rejections');
  await service.call('GET', '/v1/audit');
  await service.call('GET', '/v1/api-keys');
  await service.call('GET', '/health/ready');
  expect((await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })).status).toBe(
    200,
  );
}

test('no statement of a day reads a table of a million rows, or an index of one, from end to end', async () => {
  const before = await mirror.start();
  await live(before, 'a', 100, 60);
  expect(await before.kill('SIGTERM')).toBe(0);
  for (const table of GROWING) {
    await multiply(COPIES, admin, table);
    await asIfThereWere(MILLION, admin, { table, analysed: true });
  }
  await explainEverything(admin);
  const from = await logSize(postgres.home);

  const service = await mirror.start();
  await live(service, 'b', 25, 25);
  await watch(service);
  expect(await service.kill('SIGTERM')).toBe(0);

  const plans = await loggedPlans(postgres.home, from);
  expect(plans.length).toBeGreaterThan(1_000);
  const found = new Map<string, string[]>();
  for (const { text, plan } of plans) {
    const reads = await fullReadsIn(admin, plan, { large: GROWING, small: SMALL });
    if (reads.length > 0) found.set(text.replace(/\s+/g, ' '), reads);
  }
  expect([...found].filter(([text]) => !RARE.some((rare) => text.includes(rare)))).toEqual([]);
});
