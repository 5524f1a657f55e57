import pg from 'pg';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { runWorkload } from '../harness/workload.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { partIs } from './support/health.js';
import { type Mirror, useMirrors } from './support/service.js';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;
let ids: Record<
  'session' | 'asked' | 'platformSession' | 'document' | 'done' | 'planned' | 'dropped' | 'delivery' | 'job' | 'key',
  string
>;

const [P, C] = ['p-d-1', 'c-d-1'];
const PDF = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';

beforeAll(async () => {
  mirror = await newMirror({
    platform: { webhookSecret: WEBHOOK_SECRET },
    // An answer that a stalled machine makes late would leave a second entry.
    env: { PLATFORM_PARTNER_DOMAIN: 'https://recorder.example.org', PLATFORM_TIMEOUT_SECONDS: '60' },
  });
  const first = await mirror.start();
  const database = new pg.Client({ connectionString: mirror.database.url });
  await database.connect();
  await runWorkload({ service: first, simulator: mirror.simulator, database, adminKey: ADMIN_KEY }, 'd', 5, 2);
  await database.end();
  const plan = async () => {
    const content = 'externalId,email,firstName,lastName\np-new,p-new@example.org,Nia,New';
    const { id } = await first.startImport('kind=providers&dryRun=true', [
      { name: 'providers.csv', type: 'text/csv', content },
    ]);
    await until('it is planned', async () => {
      return (await first.call<{ state: string }>('GET', `/v1/imports/${id}`, { wait: 1 })).body.state === 'planned';
    });
    return id;
  };
  const [planned, dropped] = [await plan(), await plan()];
  const notes = `SELECT s.id FROM sessions s JOIN session_documents d ON d.session = s.id WHERE ${C_TAKES_PART}`;
  await until('its notes are here', async () => (await mirror.sql(notes)).length > 0);
  await first.kill('SIGTERM');
  // Nothing happens from now on but what is asked for.
  service = await mirror.start({ ROLES: 'api' });
  const id = async (statement: string) => String((await mirror.sql<{ id: unknown }>(statement))[0]?.id);
  const { key } = {
    key: await service.call<{ id: string }>('POST', '/v1/api-keys', { body: { name: 'k', scopes: ['imports'] } }),
  };
  const session = await id(notes);
  ids = {
    session,
    asked: await id(`SELECT s.id FROM sessions s JOIN session_requests r ON r.session = s.id`),
    platformSession: await id(`SELECT session_id AS id FROM sessions WHERE id = '${session}'`),
    document: await id(`SELECT id FROM session_documents WHERE session = '${session}'`),
    done: await id(`SELECT id FROM imports WHERE state = 'completed'`),
    planned,
    dropped,
    delivery: await id('SELECT min(id) AS id FROM webhook_deliveries'),
    job: await id('SELECT id FROM compliance_jobs'),
    key: key.body.id,
  };
});

const C_TAKES_PART = `(SELECT platform_user_id FROM people WHERE external_id = '${C}') = ANY (s.client_user_ids)`;

interface Asked {
  body?: unknown;
  headers?: Record<string, string>;
}

/** One row: the operation, its path, what is sent, and the outcome and the subjects of its entry. */
type Row = [operation: string, path: string, asked: Asked, outcome: string, subjects: object];

const FINGERPRINT = expect.stringMatching(/^[0-9a-f]{64}$/);
const JSON_TYPE = { 'content-type': 'application/json' };
const person = { email: 'new@example.org', firstName: 'Noor', lastName: 'Haddad' };

/** Every operation that touches somebody, asked for something that there is. */
function rows(): Row[] {
  const { session, asked, platformSession, document, done, planned, dropped, delivery, job, key } = ids;
  const ofSession = { session: [session], 'platform-session': [platformSession], provider: [P], client: [C] };
  const ofNew = { session: [expect.any(String)], provider: [P] };
  const anyIds = expect.arrayContaining([expect.any(String)]);
  return [
    ['GET /v1/providers', '/v1/providers?limit=1', {}, 'ok', { provider: [expect.any(String)] }],
    ['GET /v1/providers/{externalId}', `/v1/providers/${P}`, {}, 'ok', { provider: [P] }],
    ['PUT /v1/providers/{externalId}', '/v1/providers/p-x', { body: person }, 'ok', { provider: ['p-x'] }],
    [
      'POST /v1/providers/{externalId}/resolve',
      `/v1/providers/${P}/resolve`,
      { body: { action: 'create' } },
      'nothing-to-resolve',
      { provider: [P] },
    ],
    ['DELETE /v1/providers/{externalId}', `/v1/providers/${P}`, {}, 'provider-in-use', { provider: [P] }],
    ['GET /v1/clients', '/v1/clients', {}, 'ok', { client: anyIds }],
    ['GET /v1/clients/{externalId}', `/v1/clients/${C}`, {}, 'ok', { client: [C] }],
    ['GET /v1/clients/{externalId}/export', `/v1/clients/${C}/export`, {}, 'ok', ofSession],
    ['GET /v1/clients/{externalId}/disclosures', `/v1/clients/${C}/disclosures`, {}, 'ok', { client: [C] }],
    [
      'PUT /v1/clients/{externalId}',
      '/v1/clients/c-x',
      { body: { ...person, email: 'c-x@example.org', providers: [P] } },
      'ok',
      { client: ['c-x'] },
    ],
    [
      'PUT /v1/clients/{externalId}/providers',
      '/v1/clients/c-x/providers',
      { body: { providers: ['p-d-2'] } },
      'ok',
      { client: ['c-x'] },
    ],
    [
      'POST /v1/clients/{externalId}/resolve',
      '/v1/clients/c-x/resolve',
      { body: { action: 'create' } },
      'nothing-to-resolve',
      { client: ['c-x'] },
    ],
    ['DELETE /v1/clients/{externalId}', '/v1/clients/c-d-2', {}, 'ok', { client: ['c-d-2'] }],
    ['GET /v1/people/stuck', '/v1/people/stuck', {}, 'ok', {}],
    ['GET /v1/people/unknown-to-ehr', '/v1/people/unknown-to-ehr', {}, 'ok', {}],
    ['POST /v1/people/search', '/v1/people/search', { body: { email: 'c-d-1@example.org' } }, 'ok', { client: [C] }],
    ['POST /v1/people/trace', '/v1/people/trace', { body: { kind: 'client', externalId: C } }, 'ok', { client: [C] }],
    [
      'POST /v1/imports',
      '/v1/imports?kind=providers&dryRun=true',
      { body: 'externalId,email,firstName,lastName\np-y,y@example.org,Y,Y', headers: { 'content-type': 'text/csv' } },
      'ok',
      { import: [expect.any(String)] },
    ],
    ['GET /v1/imports', '/v1/imports?limit=1', {}, 'ok', { import: [expect.any(String)] }],
    ['GET /v1/imports/{id}', `/v1/imports/${done}`, {}, 'ok', { import: [done] }],
    [
      'GET /v1/imports/{id}/rows',
      `/v1/imports/${done}/rows?limit=1`,
      {},
      'ok',
      { import: [done], provider: ['p-d-0'] },
    ],
    ['GET /v1/imports/{id}/rejected.csv', `/v1/imports/${done}/rejected.csv`, {}, 'ok', { import: [done] }],
    ['GET /v1/imports/{id}/events', `/v1/imports/${done}/events`, {}, 'ok', { import: [done] }],
    ['POST /v1/imports/{id}/apply', `/v1/imports/${planned}/apply`, { body: {} }, 'ok', { import: [planned] }],
    ['POST /v1/imports/{id}/pause', `/v1/imports/${planned}/pause`, {}, 'wrong-state', { import: [planned] }],
    ['POST /v1/imports/{id}/resume', `/v1/imports/${planned}/resume`, {}, 'wrong-state', { import: [planned] }],
    ['POST /v1/imports/{id}/cancel', `/v1/imports/${dropped}/cancel`, {}, 'ok', { import: [dropped] }],
    ['POST /v1/imports/{id}/retry', `/v1/imports/${done}/retry`, { body: {} }, 'ok', { import: [done] }],
    [
      'GET /v1/sessions',
      `/v1/sessions?client=${C}&limit=1`,
      {},
      'ok',
      { session: anyIds, 'platform-session': anyIds, provider: [P], client: [C] },
    ],
    [
      'POST /v1/sessions',
      '/v1/sessions',
      {
        body: { provider: P, noteTemplateIds: ['t'], input: { text: { text: 'They spoke.' } } },
        headers: { prefer: 'wait=0' },
      },
      'begun',
      ofNew,
    ],
    ['GET /v1/sessions/{id}', `/v1/sessions/${platformSession}`, {}, 'ok', ofSession],
    ['GET /v1/sessions/{id}/request', `/v1/sessions/${session}/request`, {}, 'not-requested', ofSession],
    ['GET /v1/sessions/{id}/timeline', `/v1/sessions/${session}/timeline`, {}, 'ok', ofSession],
    [
      'PATCH /v1/sessions/{id}',
      `/v1/sessions/${session}`,
      { body: { noteTemplateIds: ['11111111-1111-4111-8111-111111111111'] } },
      'begun',
      ofSession,
    ],
    [
      'PUT /v1/sessions/{id}/note-templates',
      `/v1/sessions/${asked}/note-templates`,
      { body: { noteTemplateIds: ['22222222-2222-4222-8222-222222222222'] } },
      'begun',
      { session: [asked], 'platform-session': anyIds, provider: [P] },
    ],
    [
      'POST /v1/sessions/{id}/resolve',
      `/v1/sessions/${session}/resolve`,
      { body: { action: 'abandon' } },
      'wrong-state',
      ofSession,
    ],
    ['POST /v1/sessions/refreshes', '/v1/sessions/refreshes', { body: { session } }, 'begun', ofSession],
    ['GET /v1/sessions/{id}/notes', `/v1/sessions/${session}/notes`, {}, 'ok', ofSession],
    [
      'GET /v1/sessions/{id}/notes/{documentId}/revisions',
      `/v1/sessions/${session}/notes/${document}/revisions`,
      {},
      'ok',
      ofSession,
    ],
    ['GET /v1/sessions/{id}/transcript', `/v1/sessions/${session}/transcript`, {}, 'no-transcript', ofSession],
    ['GET /v1/sessions/{id}/insights', `/v1/sessions/${session}/insights`, {}, 'ok', ofSession],
    ['GET /v1/sessions/{id}/recording-url', `/v1/sessions/${session}/recording-url`, {}, 'no-recording', ofSession],
    [
      'GET /v1/processing-sessions/{processingId}',
      '/v1/processing-sessions/none',
      {},
      'unknown-processing-session',
      { path: [FINGERPRINT] },
    ],
    [
      'GET /v1/processing-notices/{deliveryId}',
      '/v1/processing-notices/none',
      {},
      'unknown-processing-notice',
      { path: [FINGERPRINT] },
    ],
    ['GET /v1/smart-edit/jobs/{jobId}', '/v1/smart-edit/jobs/none', {}, 'unknown-job', { path: [FINGERPRINT] }],
    ['POST /v1/recordings', '/v1/recordings', { body: 'sound', headers: { 'content-type': 'audio/wav' } }, 'begun', {}],
    [
      'POST /v1/recordings/upload-url',
      '/v1/recordings/upload-url',
      { body: { contentType: 'audio/wav', size: 5 } },
      'begun',
      {},
    ],
    [
      'POST /v1/recorder/launches',
      '/v1/recorder/launches',
      { body: { provider: P, client: C, variant: 'in-person' } },
      'begun',
      { provider: [P], client: [C] },
    ],
    ['POST /v1/recorder/recoveries', '/v1/recorder/recoveries', { body: { provider: P } }, 'begun', { provider: [P] }],
    [
      'POST /v1/compliance/jobs',
      '/v1/compliance/jobs',
      { body: pdfForm() },
      'begun',
      { 'compliance-job': [expect.any(String)] },
    ],
    ['GET /v1/compliance/jobs', '/v1/compliance/jobs', {}, 'ok', { 'compliance-job': anyIds }],
    ['GET /v1/compliance/jobs/{id}', `/v1/compliance/jobs/${job}`, {}, 'ok', { 'compliance-job': [job] }],
    [
      'POST /v1/compliance/jobs/{id}/resolve',
      `/v1/compliance/jobs/${job}/resolve`,
      { body: { action: 'abandon' } },
      'wrong-state',
      { 'compliance-job': [job] },
    ],
    ['POST /v1/compliance/upload-url', '/v1/compliance/upload-url', { body: { size: 5 } }, 'begun', {}],
    ['GET /v1/events', '/v1/events?limit=1', {}, 'ok', { provider: [expect.any(String)] }],
    ['GET /v1/events', '/v1/events', { headers: { accept: 'text/event-stream' } }, 'ok', {}],
    ['GET /v1/webhook-deliveries', '/v1/webhook-deliveries?limit=1', {}, 'ok', { delivery: [expect.any(String)] }],
    ['GET /v1/webhook-deliveries/{id}', `/v1/webhook-deliveries/${delivery}`, {}, 'ok', { delivery: [delivery] }],
    [
      'POST /v1/webhook-deliveries/{id}/replay',
      `/v1/webhook-deliveries/${delivery}/replay`,
      {},
      'ok',
      { delivery: [delivery] },
    ],
    [
      'POST /v1/webhook-deliveries/{id}/dismiss',
      `/v1/webhook-deliveries/${delivery}/dismiss`,
      {},
      'not-waiting',
      { delivery: [delivery] },
    ],
    [
      'POST /v1/webhook-deliveries/replay',
      '/v1/webhook-deliveries/replay',
      { body: { state: 'dead', dryRun: true } },
      'ok',
      {},
    ],
    ['GET /v1/api-keys', '/v1/api-keys', {}, 'ok', { 'api-key': [key] }],
    [
      'POST /v1/api-keys',
      '/v1/api-keys',
      { body: { name: 'two', scopes: ['imports'] } },
      'ok',
      { 'api-key': [expect.any(String)] },
    ],
    [
      'POST /v1/api-keys/{id}/rotate',
      `/v1/api-keys/${key}/rotate`,
      { body: {} },
      'ok',
      { 'api-key': expect.arrayContaining([key]) },
    ],
    ['DELETE /v1/api-keys/{id}', `/v1/api-keys/${key}`, {}, 'ok', { 'api-key': [key] }],
    ['POST /v1/browser-session', '/v1/browser-session', {}, 'ok', { 'api-key': ['admin'] }],
    ['DELETE /v1/browser-session', '/v1/browser-session', {}, 'ok', {}],
    ['GET /v1/audit', `/v1/audit?client=${C}`, {}, 'ok', { client: [C] }],
    ['GET /v1/audit', `/v1/audit?client=${C}`, { headers: { accept: 'application/x-ndjson' } }, 'ok', {}],
  ];
}

/** Show settings and numbers, and touch nobody. */
const UNAUDITED = [
  'GET /health/live',
  'GET /health/ready',
  'GET /metrics',
  'GET /v1/browser-session',
  'GET /v1/capabilities',
  'GET /v1/overview',
  'GET /v1/sessions/refreshes',
  'GET /v1/webhook-rejections',
];

function pdfForm(): FormData {
  const form = new FormData();
  form.append('files', new Blob([PDF], { type: 'application/pdf' }), 'notes.pdf');
  return form;
}

/** Asks once, and again while the database has no time for it, as a caller should. */
const ask = (operation: string, path: string, asked: Asked) =>
  until('it is answered for good', async () => {
    const answer = await askOnce(operation, path, asked);
    return answer.text.includes('problem:database-unavailable') ? undefined : answer;
  });

async function askOnce(operation: string, path: string, { body, headers }: Asked) {
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof FormData);
  const response = await fetch(service.url + path, {
    method: operation.split(' ', 1)[0] ?? '',
    headers: {
      authorization: `Bearer ${ADMIN_KEY}`,
      ...(isJson && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: (isJson ? JSON.stringify(body) : body) as string | FormData | undefined,
  });
  // A stream goes on for ever: what it begins with is enough.
  const reader = response.body?.getReader();
  const first = new TextDecoder().decode((await reader?.read())?.value);
  await reader?.cancel();
  return { status: response.status, requestId: response.headers.get('request-id'), text: first };
}

const entriesOf = (requestId: string | null) =>
  mirror.sql<{ action: string; outcome: string; subjects: object; source: string }>(
    `SELECT action, outcome, source, coalesce((SELECT jsonb_object_agg(kind, of) FROM
       (SELECT kind, jsonb_agg(subject) AS of FROM audit_subjects WHERE entry = e.id GROUP BY kind) AS s), '{}') AS subjects
     FROM audit_entries e WHERE request_id = $1 ORDER BY id`,
    [requestId],
  );

const actionOf = (operation: string) => operation.replace(/\{(\w+)\}/g, ':$1');

test('every operation is in the table, or touches nobody', async () => {
  const { body } = await service.call<{ paths: Record<string, object> }>('GET', '/openapi.json');
  const operations = Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const known = new Set([...rows().map(([operation]) => operation), ...UNAUDITED, 'POST /webhooks/platform']);
  expect(operations.filter((operation) => !known.has(operation))).toEqual([]);
});

test('a request leaves one entry, with whom it was about', async () => {
  const found: unknown[] = [];
  const expected: unknown[] = [];
  for (const [operation, path, asked, outcome, subjects] of rows()) {
    const { requestId } = await ask(operation, path, asked);
    found.push([operation, await entriesOf(requestId)]);
    expected.push([operation, [{ action: actionOf(operation), outcome, source: '127.0.0.1', subjects }]]);
  }
  expect(found).toEqual(expected);
});

test('a path that leads to nothing leaves its fingerprint and no more', async () => {
  for (const [operation, , asked] of rows().filter(([one]) => one.includes('{'))) {
    const path = operation.replace(/^\w+ /, '').replace(/\{\w+\}/g, '0192aaaa-0000-7000-8000-000000000000');
    if (operation.startsWith('PUT') && !/(providers|note-templates)$/.test(path)) continue; // makes what it names
    const { requestId } = await ask(operation, path, asked);
    expect([operation, await entriesOf(requestId)]).toMatchObject([operation, [{ subjects: { path: [FINGERPRINT] } }]]);
    expect([operation, (await entriesOf(requestId))[0]?.outcome]).not.toEqual([operation, 'ok']);
  }
});

test('one that failed after it had to be on record leaves a second entry, which says how', async () => {
  mirror.trouble({ operation: 'initiateAuth', kind: 'status', status: 400 });
  const launch = { provider: P, client: C, variant: 'in-person' };
  const { requestId, text } = await ask('POST', '/v1/recorder/launches', { body: launch });
  expect(JSON.parse(text)).toMatchObject({ detail: expect.stringContaining('if it gave any') });
  const entry = { action: 'POST /v1/recorder/launches', subjects: { provider: [P], client: [C] } };
  expect(await entriesOf(requestId)).toMatchObject([
    { ...entry, outcome: 'begun' },
    { ...entry, outcome: 'platform-rejected' },
  ]);
});

/** What is refused before a handler has it. */
const REFUSED: [outcome: string, path: string, asked: Asked][] = [
  ['bad-json', '/v1/providers/Doe-1970', { body: '{"email": "doe@ex', headers: JSON_TYPE }],
  ['body-too-large', '/v1/providers/Doe-1970', { body: `{"email": "${'x'.repeat(70_000)}"}`, headers: JSON_TYPE }],
  ['unsupported-media-type', '/v1/providers/Doe-1970', { body: 'doe', headers: { 'content-type': 'text/plain' } }],
  ['bad-on-behalf-of', '/v1/providers/Doe-1970', { body: {}, headers: { 'notebridge-on-behalf-of': 'Jane Doe' } }],
];

test.each(REFUSED)('%s: what is refused before it is read leaves its entry', async (outcome, path, asked) => {
  const { requestId, text } = await ask('PUT', path, asked);
  expect(text).toContain(`problem:${outcome}`);
  const action = 'PUT /v1/providers/:externalId';
  expect(await entriesOf(requestId)).toEqual([
    { action, outcome, source: '127.0.0.1', subjects: { path: [FINGERPRINT] } },
  ]);
  const unknown = { ...asked, headers: { ...asked.headers, authorization: 'Bearer nothing' } };
  expect(await entriesOf((await ask('PUT', path, unknown)).requestId)).toEqual([]);
});

test('a key that lacks the scope leaves one entry', async () => {
  const body = { name: 'narrow', scopes: ['imports'] };
  const { key } = (await service.call<{ key: string }>('POST', '/v1/api-keys', { body })).body;
  const { requestId } = await ask('GET', `/v1/clients/${C}`, { headers: { authorization: `Bearer ${key}` } });
  expect(await entriesOf(requestId)).toMatchObject([{ outcome: 'forbidden-scope', subjects: { path: [FINGERPRINT] } }]);
});

test('an unaudited operation leaves none', async () => {
  for (const operation of UNAUDITED) {
    const { requestId } = await ask(operation, operation.split(' ')[1] ?? '', {});
    expect([operation, await entriesOf(requestId)]).toEqual([operation, []]);
  }
});

describe('when the trail takes no entries', () => {
  const digests = async () => {
    const tables = await mirror.sql<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
         AND relname NOT IN ('workers', '_prisma_migrations') AND relname NOT LIKE 'audit_%' ORDER BY 1`,
    );
    const all: string[] = [];
    for (const { name } of tables) {
      const [row] = await mirror.sql<{ digest: string }>(
        `SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) AS digest FROM ${name} t`,
      );
      all.push(`${name} ${row?.digest}`);
    }
    return all;
  };

  beforeAll(() =>
    mirror.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON audit_entries FOR EACH STATEMENT EXECUTE FUNCTION refuse()`),
  );
  afterAll(() => mirror.sql('DROP FUNCTION refuse CASCADE'));

  test('nothing is read and nothing is changed', async () => {
    // The address of a recording is asked for before it can be told whether there is one.
    const calls = () => mirror.arrivals() - mirror.arrivals('getSession');
    const callsBefore = calls();
    const before = await digests();
    for (const [operation, path, asked] of rows()) {
      const { status, text } = await ask(operation, path, asked);
      expect([operation, status, text]).toEqual([operation, 503, expect.stringContaining('problem:audit-unavailable')]);
    }
    for (const [outcome, path, asked] of REFUSED) {
      expect([outcome, (await ask('PUT', path, asked)).status]).toEqual([outcome, 503]);
    }
    expect(await digests()).toEqual(before);
    expect(calls()).toBe(callsBefore);
  });

  test('a refused caller is told so too, and health is red', async () => {
    const { status } = await ask('GET', '/v1/clients', { headers: { authorization: 'Bearer nothing' } });
    expect(status).toBe(401);
    await until('health says why', async () => {
      return (await partIs(service, 'audit', 'down')).reason?.includes('takes no entries');
    });
  });
});
