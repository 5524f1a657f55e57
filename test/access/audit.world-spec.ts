import { planOf } from '../../harness/query-plans.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { AuditPageResponse, AuditResponse } from '../../src/audit/audit.dto.js';
import { Audit } from '../../src/audit/audit.js';
import { AuditRepository, IN_ORDER_OF_INDEX } from '../../src/audit/audit.repository.js';
import { type AuditRecord, AuditSubjects, SYSTEM } from '../../src/audit/audit-record.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { statementsOf } from '../support/statements.js';
import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

const TEMPLATE = '11111111-1111-4111-8111-111111111111';
const FINGERPRINT = expect.stringMatching(/^[0-9a-f]{70}$/);
const ANY = [expect.any(String)];
const MANY = expect.arrayContaining(ANY);
const [P, C] = ['p-1', 'c-1'];

type Asked = NonNullable<Parameters<typeof ask>[1]>;

/** No program listens there. */
const ENDPOINT = 'http://127.0.0.1:9/hook';
const NO_WAIT = { prefer: 'wait=0' };
const as = (type: string) => ({ 'content-type': type });
const person = (name: string) => ({ email: `${name}@example.org`, firstName: 'Noor', lastName: 'Haddad' });
const client = (name: string) => ({ ...person(name), providers: [P] });
const csv = (name: string) => ({
  body: `externalId,email,firstName,lastName\n${name},${name}@example.org,Nia,New`,
  headers: as('text/csv'),
});

function pdf(): FormData {
  const form = new FormData();
  const content = '%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n';
  form.append('files', new Blob([content], { type: 'application/pdf' }), 'notes.pdf');
  return form;
}

/** Creates one of each kind of thing that requests can be about. @returns the ids */
async function createEach() {
  const made = async (line: string, asked: Asked) => String((await ask<{ id: string }>(line, asked)).body.id);
  for (const name of [P, 'p-2']) await ask(`PUT /v1/providers/${name}`, { body: person(name) });
  await world.settle();
  for (const name of [C, 'c-2']) await ask(`PUT /v1/clients/${name}`, { body: client(name) });
  const done = await made('POST /v1/imports?kind=providers', csv('p-3'));
  const planned = await made('POST /v1/imports?kind=providers&dryRun=true', csv('p-4'));
  const dropped = await made('POST /v1/imports?kind=providers&dryRun=true', csv('p-5'));
  const job = await made('POST /v1/compliance/jobs', { body: pdf(), headers: NO_WAIT });
  const body = { provider: P, noteTemplateIds: [TEMPLATE], input: { text: { text: 'They spoke.' } } };
  const requested = await made('POST /v1/sessions', { body, headers: NO_WAIT });
  await world.settle();
  const { state } = world.platform.simulator;
  const [provider, user] = [P, C].map((name) => String(world.platform.usersOf(name)[0]?.userId));
  const simulated = createSession(state, {
    providerUserId: provider as string,
    clientUserIds: [user as string],
    noteTemplateIds: [TEMPLATE],
    input: { kind: 'text', text: 'They spoke.' },
    date: '2026-03-01T09:00:00.000Z',
  });
  for (const session of state.sessions.list()) while (session.nextStep) takeStep(state, session);
  await world.settle();
  const id = async (statement: string) => String((await world.sql<{ id: unknown }>(statement))[0]?.id);
  const session = await id(`SELECT id FROM sessions WHERE session_id = '${simulated.sessionId}'`);
  return {
    ...{ done, planned, dropped, job, requested, session },
    platformSession: simulated.sessionId,
    user: await id(`SELECT platform_user_id AS id FROM people WHERE external_id = '${P}'`),
    document: await id(`SELECT id FROM session_documents WHERE session = '${session}'`),
    delivery: await id('SELECT min(id) AS id FROM webhook_deliveries'),
    key: (await makeKey(['imports'])).id,
    subscription: await made('POST /v1/subscriptions', { body: { url: ENDPOINT } }),
  };
}

/** A request, the outcome and the subjects of its audit entry. */
type Row = [line: string, outcome: string, subjects: object, asked?: Asked];

/** At least one request for each audited operation. */
function rowsFor(ids: Awaited<ReturnType<typeof createEach>>): Row[] {
  const { session, requested, platformSession, user, document, done, planned, dropped, delivery, job, key } = ids;
  const ofSubscription = { subscription: [ids.subscription] };
  const subscription = `/v1/subscriptions/${ids.subscription}`;
  const ofSession = { session: [session], 'platform-session': [platformSession], provider: [P], client: [C] };
  const ofRequest = { session: [requested], 'platform-session': ANY, provider: [P] };
  const wish = { provider: P, noteTemplateIds: ['t'], input: { text: { text: 'They spoke.' } } };
  const create = { body: { action: 'create' } };
  const abandon = { body: { action: 'abandon' } };
  return [
    ['GET /v1/providers?limit=1', 'ok', { provider: ANY }],
    [`GET /v1/providers/${P}`, 'ok', { provider: [P] }],
    ['PUT /v1/providers/p-x', 'ok', { provider: ['p-x'] }, { body: person('p-x') }],
    ['POST /v1/providers/p-x/rename', 'ok', { provider: ['p-new', 'p-x'] }, { body: { externalId: 'p-new' } }],
    [`POST /v1/providers/${P}/resolve`, 'nothing-to-resolve', { provider: [P] }, create],
    [`DELETE /v1/providers/${P}`, 'provider-in-use', { provider: [P] }],
    ['GET /v1/clients', 'ok', { client: MANY }],
    [`GET /v1/clients/${C}`, 'ok', { client: [C] }],
    [`GET /v1/clients/${C}/export`, 'ok', ofSession],
    [`GET /v1/clients/${C}/disclosures`, 'ok', { client: [C] }],
    [`PUT /v1/clients/${C}/legal-hold`, 'held for CASE-1', { client: [C] }, { body: { reason: 'CASE-1' } }],
    [`DELETE /v1/clients/${C}/legal-hold`, 'released', { client: [C] }],
    ['PUT /v1/clients/c-x', 'ok', { client: ['c-x'] }, { body: client('c-x') }],
    ['PUT /v1/clients/c-x/providers', 'ok', { client: ['c-x'] }, { body: { providers: ['p-2'] } }],
    ['POST /v1/clients/c-x/resolve', 'nothing-to-resolve', { client: ['c-x'] }, create],
    ['POST /v1/clients/c-x/rename', 'ok', { client: ['c-new', 'c-x'] }, { body: { externalId: 'c-new' } }],
    ['POST /v1/clients/c-new/merge', 'ok', { client: [C, 'c-new'] }, { body: { into: C } }],
    ['DELETE /v1/clients/c-2', 'ok', { client: ['c-2'] }],
    ['GET /v1/people.csv', 'ok', { provider: MANY, client: MANY }],
    ['GET /v1/people/unknown-to-ehr', 'ok', {}],
    [`GET /v1/people/platform-users/${user}`, 'ok', { 'platform-user': [user], provider: [P] }],
    ['POST /v1/people/search', 'ok', { client: [C] }, { body: { email: 'c-1@example.org' } }],
    ['POST /v1/search', 'ok', { client: [C] }, { body: { text: 'c-1@example.org' } }],
    ['POST /v1/people/names', 'ok', { provider: [P], client: [C] }, { body: { providers: [P], clients: [C, 'c-?'] } }],
    ['POST /v1/people/resolve', 'ok', {}, { body: { action: 'ignore', code: 'rejected', dryRun: true } }],
    ['POST /v1/people/retry?code=rejected&dryRun=true', 'ok', {}],
    ['POST /v1/people/trace', 'ok', { client: [C] }, { body: { kind: 'client', externalId: C } }],
    ['POST /v1/imports?kind=providers&dryRun=true', 'ok', { import: ANY, provider: ['p-y'] }, csv('p-y')],
    ['GET /v1/imports?limit=1', 'ok', { import: ANY }],
    [`GET /v1/imports/${done}`, 'ok', { import: [done] }],
    [`GET /v1/imports/${done}/rows?limit=1`, 'ok', { import: [done], provider: ['p-3'] }],
    [`GET /v1/imports/${done}/rejected.csv`, 'ok', { import: [done] }],
    [`GET /v1/imports/${done}/cancellation`, 'ok', { import: [done] }],
    [`POST /v1/imports/${planned}/apply`, 'ok', { import: [planned] }, { body: {} }],
    [`POST /v1/imports/${planned}/pause`, 'ok', { import: [planned] }],
    [`POST /v1/imports/${planned}/resume`, 'ok', { import: [planned] }],
    [`PATCH /v1/imports/${dropped}/rows`, 'unknown-row', { import: [dropped] }, { body: { rows: [{ line: 9 }] } }],
    [`POST /v1/imports/${dropped}/mapping`, 'wrong-state', { import: [dropped] }, { body: { columns: {} } }],
    [`POST /v1/imports/${dropped}/cancel`, 'ok', { import: [dropped] }],
    [`POST /v1/imports/${done}/retry`, 'ok', { import: [done] }, { body: {} }],
    [`GET /v1/sessions?client=${C}&limit=1`, 'ok', ofSession],
    ['POST /v1/sessions', 'begun', { session: ANY, provider: [P] }, { body: wish, headers: NO_WAIT }],
    [`GET /v1/sessions/${platformSession}`, 'ok', ofSession],
    [`GET /v1/sessions/${session}/timeline`, 'ok', ofSession],
    [`PATCH /v1/sessions/${session}`, 'begun', ofSession, { body: { noteTemplateIds: [TEMPLATE] } }],
    [`PUT /v1/sessions/${requested}/note-templates`, 'begun', ofRequest, { body: { noteTemplateIds: [TEMPLATE] } }],
    [`POST /v1/sessions/${session}/resolve`, 'wrong-state', ofSession, abandon],
    ['POST /v1/sessions/refreshes', 'begun', ofSession, { body: { session } }],
    [`GET /v1/sessions/${session}/notes`, 'ok', ofSession],
    [`GET /v1/sessions/${session}/notes/${document}/revisions`, 'ok', ofSession],
    [`GET /v1/sessions/${session}/transcript`, 'no-transcript', ofSession],
    [`GET /v1/sessions/${session}/insights`, 'ok', ofSession],
    [`GET /v1/sessions/${session}/recording-url`, 'no-recording', ofSession],
    ['GET /v1/processing-sessions/none', 'unknown-processing-session', { path: [FINGERPRINT] }],
    ['POST /v1/recordings', 'begun', {}, { body: 'sound', headers: as('audio/wav') }],
    ['POST /v1/recordings/upload-url', 'begun', {}, { body: { contentType: 'audio/wav', size: 5 } }],
    ['POST /v1/recorder/launches', 'begun', { provider: [P], client: [C] }, LAUNCH],
    ['POST /v1/recorder/recoveries', 'begun', { provider: [P] }, { body: { provider: P } }],
    ['POST /v1/compliance/jobs', 'begun', { 'compliance-job': ANY }, { body: pdf(), headers: NO_WAIT }],
    ['GET /v1/compliance/jobs', 'ok', { 'compliance-job': MANY }],
    [`GET /v1/compliance/jobs/${job}`, 'ok', { 'compliance-job': [job] }],
    [`POST /v1/compliance/jobs/${job}/resolve`, 'wrong-state', { 'compliance-job': [job] }, abandon],
    ['POST /v1/compliance/upload-url', 'begun', {}, { body: { size: 5 } }],
    ['GET /v1/events?limit=1', 'ok', { provider: ANY }],
    ['GET /v1/events', 'ok', expect.objectContaining({ provider: MANY, client: MANY })],
    ['GET /fhir/DocumentReference?patient.identifier=c-1', 'ok', ofSession],
    [
      'POST /fhir/DocumentReference/_search',
      'ok',
      ofSession,
      { body: 'patient.identifier=c-1', headers: as('application/x-www-form-urlencoded') },
    ],
    [`GET /fhir/DocumentReference/${document}`, 'ok', ofSession],
    ['GET /v1/webhook-deliveries?limit=1', 'ok', { delivery: ANY }],
    [`GET /v1/webhook-deliveries/${delivery}`, 'ok', { delivery: [delivery] }],
    [`POST /v1/webhook-deliveries/${delivery}/replay`, 'ok', { delivery: [delivery] }],
    [`POST /v1/webhook-deliveries/${delivery}/dismiss`, 'not-waiting', { delivery: [delivery] }],
    ['POST /v1/webhook-deliveries/replay', 'ok', {}, { body: { state: 'dead', dryRun: true } }],
    ['PUT /v1/sending', 'released for CASE-2', {}, { body: { held: false, reason: 'CASE-2' } }],
    ['POST /v1/subscriptions', 'ok', { subscription: ANY }, { body: { url: ENDPOINT } }],
    [`GET ${subscription}`, 'ok', ofSubscription],
    [`GET ${subscription}/attempts`, 'ok', ofSubscription],
    [`PATCH ${subscription}`, 'ok', ofSubscription, { body: { paused: true } }],
    [`POST ${subscription}/test`, 'ok', ofSubscription],
    [`POST ${subscription}/skip`, 'not-next', ofSubscription, { body: { cursor: '9-9' } }],
    [`POST ${subscription}/rotate-secret`, 'ok', ofSubscription],
    [`DELETE ${subscription}`, 'ok', ofSubscription],
    ['GET /v1/api-keys', 'ok', { 'api-key': [key] }],
    ['POST /v1/api-keys', 'ok', { 'api-key': ANY }, { body: { name: 'two', scopes: ['imports'] } }],
    [`POST /v1/api-keys/${key}/rotate`, 'ok', { 'api-key': expect.arrayContaining([key]) }, { body: {} }],
    [`DELETE /v1/api-keys/${key}`, 'ok', { 'api-key': [key] }],
    ['POST /v1/browser-session', 'ok', { 'api-key': ['admin'], 'browser-session': ANY }],
    ['POST /v1/browser-session/step-up', 'no-browser-session', {}, { body: { key: 'x' } }],
    ['DELETE /v1/browser-session', 'ok', {}],
    ['GET /v1/browser-sessions', 'ok', {}],
    [`DELETE /v1/browser-sessions/${key}`, 'no-browser-session', { path: ANY }],
    [`GET /v1/audit?client=${C}&limit=1`, 'ok', expect.objectContaining({ client: expect.arrayContaining([C]) })],
    [
      `GET /v1/audit?client=${C}`,
      'ok',
      expect.objectContaining({ client: MANY }),
      { headers: { accept: 'application/x-ndjson' } },
    ],
  ];
}

const LAUNCH = { body: { provider: P, client: C, variant: 'in-person' } };

/** Operations that show settings and numbers, and the one of the platform. */
const UNAUDITED = [
  ...['GET /health/live', 'GET /health/ready', 'GET /metrics', 'GET /v1/browser-session', 'GET /v1/capabilities'],
  'GET /v1/words',
  ...[
    'GET /v1/overview',
    'GET /v1/sending',
    'GET /v1/subscriptions',
    'GET /fhir/metadata',
    'GET /v1/sessions/refreshes',
    'POST /webhooks/platform',
  ],
  'GET /v1/sign-in/methods',
];

/** Requests that are rejected before their handler reads them. */
const UNREAD: [outcome: string, asked: Asked][] = [
  ['bad-json', { body: '{"email": "doe@ex', headers: as('application/json') }],
  ['body-too-large', { body: `{"email": "${'x'.repeat(70_000)}"}`, headers: as('application/json') }],
  ['unsupported-media-type', { body: 'doe', headers: as('text/plain') }],
  ['bad-on-behalf-of', { body: {}, headers: { 'notebridge-on-behalf-of': 'Jane Doe' } }],
];
const UNREAD_LINE = 'PUT /v1/providers/Doe-1970';

const PUT_PROVIDER = 'PUT /v1/providers/:externalId';

const audit = async (query: string) => (await ask<AuditPageResponse>(`GET /v1/audit?${query}`)).body;

/** The audit entries of one request, oldest first. */
async function entriesOf({ headers }: { headers: Headers }): Promise<Partial<AuditResponse>[]> {
  const { items } = await audit('limit=20');
  return items.filter(({ requestId }) => requestId === headers.get('request-id')).reverse();
}

describe('the audit log', () => {
  it('has one entry for each request, with its route, outcome and subjects, and without names', async () => {
    const { body: openapi } = await ask<{ paths: Record<string, object> }>('GET /openapi.json');
    const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const missing = new Set(operations.filter((operation) => !UNAUDITED.includes(operation)));
    const rows = rowsFor(await createEach());
    const ids: (string | null)[] = [];
    for (const [line, , , asked] of rows) ids.push((await ask(line, asked)).headers.get('request-id'));
    const { items } = await audit('limit=200');
    for (const [index, [line, outcome, subjects]] of rows.entries()) {
      const entries = items.filter(({ requestId }) => requestId === ids[index]);
      // A list of people is streamed in two parts.
      expect([line, entries.length]).toEqual([line, line.includes('people.csv') ? 2 : 1]);
      const shown = Object.assign({}, ...entries.map((entry) => entry.subjects));
      expect([line, entries[0]]).toMatchObject([line, { outcome, source: '127.0.0.1' }]);
      expect([line, shown]).toEqual([line, subjects]);
      const { action: route, summary } = entries[0] as AuditResponse;
      expect([line, /^[a-z -]+$/i.test(summary) && summary !== route]).toEqual([line, true]);
      expect(line.split('?')[0]).toMatch(new RegExp(`^${route.replace(/:\w+/g, '[^/]+')}$`));
      missing.delete(route.replace(/:(\w+)/g, '{$1}'));
    }
    expect([...missing]).toEqual([]);
    for (const line of UNAUDITED) expect([line, await entriesOf(await ask(line))]).toEqual([line, []]);
    expect(JSON.stringify(await world.sql('SELECT * FROM audit_entries, audit_subjects'))).not.toMatch(/noor|haddad/i);
    expect((await ask('GET /metrics')).text).not.toContain('c-x'); // metrics have routes, too
  });

  it('has only a fingerprint of a path that leads to nothing', async () => {
    const { body: openapi } = await ask<{ paths: Record<string, object> }>('GET /openapi.json');
    for (const [path, methods] of Object.entries(openapi.paths).filter(([one]) => one.includes('{'))) {
      for (const method of Object.keys(methods).map((name) => name.toUpperCase())) {
        if (method === 'PUT' && path.endsWith('{externalId}')) continue; // creates what it names
        const line = `${method} ${path.replace(/\{\w+\}/g, '0192aaaa-0000-7000-8000-000000000000')}`;
        const [entry, ...more] = await entriesOf(await ask(line, method === 'GET' ? {} : { body: {} }));
        expect([line, entry, more]).toMatchObject([line, { subjects: { path: [FINGERPRINT] } }, []]);
        expect([line, entry?.outcome]).not.toEqual([line, 'ok']);
      }
    }
  });

  it('has a second entry when a request fails after its first was necessary', async () => {
    await createEach();
    world.platform.injectFault({ operation: 'initiateAuth', kind: 'status', status: 400 });
    const answer = await ask<{ detail: string }>('POST /v1/recorder/launches', LAUNCH);
    expect(answer.body.detail).toContain('if it sent one');
    const entry = { action: 'POST /v1/recorder/launches', subjects: { provider: [P], client: [C] } };
    expect(await entriesOf(answer)).toMatchObject([
      { ...entry, outcome: 'begun' },
      { ...entry, outcome: 'platform-rejected' },
    ]);
  });

  it.each(UNREAD)('has an entry of a request rejected before it is read: %s', async (outcome, asked) => {
    const answer = await ask(UNREAD_LINE, asked);
    expect(answer.problem).toBe(outcome);
    const entry = { action: PUT_PROVIDER, outcome, subjects: { path: [FINGERPRINT] } };
    expect(await entriesOf(answer)).toMatchObject([entry]);
    expect(await entriesOf(await ask(UNREAD_LINE, { ...asked, key: 'wrong' }))).toEqual([]);
  });

  it('has an entry of a request without the scope', async () => {
    const { key } = await makeKey(['imports']);
    const entry = { outcome: 'forbidden-scope', subjects: { path: [FINGERPRINT] } };
    expect(await entriesOf(await ask(`GET /v1/clients/${C}`, { key }))).toMatchObject([entry]);
  });

  it('is read page by page, newest first, and by subject', async () => {
    for (const name of ['p-a', 'p-b', 'p-c']) await ask(`PUT /v1/providers/${name}`, { body: person(name) });
    const first = await audit('limit=2');
    const second = await audit(`limit=2&cursor=${first.nextCursor}`);
    expect([...first.items, ...second.items].slice(0, 3).map(({ subjects }) => subjects)).toEqual(
      ['p-c', 'p-b', 'p-a'].map((name) => ({ provider: [name] })),
    );
    expect((await audit(`subject=p-b&action=${encodeURIComponent(PUT_PROVIDER)}`)).items).toHaveLength(1);
    expect((await ask('GET /v1/audit?cursor=bm8')).problem).toBe('bad-cursor');
  });
});

describe('an audit entry about more than 50 people', () => {
  const ids = Array.from({ length: 60 }, (_, n) => `l-${n + 10}`);
  const rows = (cells: string) => ({
    body: `externalId,email,firstName,lastName\n${ids.map((id) => `${id},${id}${cells}`).join('\n')}`,
    headers: as('text/csv'),
  });
  let rejected: string;

  beforeEach(async () => {
    await ask('POST /v1/imports?kind=providers', rows('@example.org,Nia,New'));
    await world.settle();
    const { body } = await ask<{ id: string }>('POST /v1/imports?kind=providers', rows(',Nia,New'));
    rejected = body.id;
    await world.settle();
  });

  it('keeps their range, so that a search for one of them finds it', async () => {
    for (const line of [
      'GET /v1/providers?limit=200&state=synced',
      'GET /v1/people.csv',
      'GET /v1/imports/:id/rows?limit=200',
      'GET /v1/imports/:id/rejected.csv',
      'GET /v1/events?limit=200',
    ]) {
      const answer = await ask(line.replace(':id', rejected));
      expect([line, answer.status]).toEqual([line, 200]);
      const action = line.split('?')[0];
      const search = (id: string) => audit(`provider=${id}&limit=200&action=${encodeURIComponent(String(action))}`);
      const [entry] = (await search('l-42')).items;
      expect([line, entry?.requestId]).toEqual([line, answer.headers.get('request-id')]);
      expect(entry).toMatchObject({ ranges: { provider: { count: 60, first: 'l-10', last: 'l-69' } } });
      expect(entry?.filter).toEqual(line.includes('state') ? { state: 'synced' } : {});
      expect((await search('m-1')).items).toEqual([]);
      expect((await audit(`subject=l-42&limit=200`)).items.map(({ id }) => id)).toContain(entry?.id);
    }
  });

  it('is part of what its reader saw', async () => {
    await ask('GET /v1/providers?limit=200');
    const shown = encodeURIComponent('GET /v1/providers');
    for (const accept of ['application/json', 'application/x-ndjson']) {
      const { id, key } = await makeKey(['admin']);
      await ask(`GET /v1/audit?action=${shown}`, { key, headers: { accept } });
      const readersOf = async (provider: string) => (await audit(`provider=${provider}&keyId=${id}`)).items;
      expect(await readersOf('l-42')).toMatchObject([
        { ranges: { provider: { count: 60, first: 'l-10', last: 'l-69' } } },
      ]);
      expect(await readersOf('m-1')).toEqual([]);
    }
  });

  it('is part of an import, too', async () => {
    const { items } = await audit('provider=l-42&limit=200');
    expect(items.filter(({ action }) => action === 'POST /v1/imports')).toMatchObject([
      { ranges: { provider: { count: 60 } }, filter: { kind: 'providers' } },
    ]);
  });

  it('is only repeated by a stream for other people, or a minute later', async () => {
    const log = world.get(Audit);
    const record: AuditRecord = {
      by: SYSTEM,
      action: 'stream',
      subjects: new AuditSubjects(),
      outcome: 'ok',
      stored: 'no',
    };
    async function* sent() {
      for (const id of ['l-10', 'l-10', 'l-11', 'l-10']) yield id;
      await world.advance('1 min');
      yield 'l-10';
    }
    const counts: number[] = [];
    const parts = await log.run(record, () => log.parts(sent(), (id) => [['provider', id]]));
    for await (const _ of parts)
      counts.push((await world.sql(`SELECT FROM audit_entries WHERE action = 'stream'`)).length);
    expect(counts).toEqual([1, 1, 2, 2, 3]);
  });
});

describe('a search of the audit log by subject', () => {
  it.each(['client', 'subject'])('reads a page in order, among many ranges that contain it: %s', async (name) => {
    await world.sql(
      `WITH entry AS (INSERT INTO audit_entries (uid, at, mac, key_id, key_name, action, outcome)
         SELECT gen_random_uuid(), now(), '', 'k', 'k', 'GET /v1/clients', 'ok' FROM generate_series(1, 20000) RETURNING id),
       named AS (INSERT INTO audit_subjects (entry, kind, subject) SELECT id, 'provider', 'p-' || id FROM entry)
       INSERT INTO audit_ranges (entry, kind, count, first, last) SELECT id, 'client', 60, 'c-1', 'c-9' FROM entry`,
    );
    const large = ['audit_entries', 'audit_subjects', 'audit_ranges'];
    const search = () => world.get(AuditRepository).find({ [name]: 'c-5' }, 20);
    const [statement] = await statementsOf(['audit_ranges'], search);
    if (!statement) throw new Error('No statement was sent.');
    const connection = await world.database.pool.connect();
    for (const known of ['no statistics', 'statistics']) {
      if (known === 'statistics') await world.sql('ANALYZE audit_entries, audit_subjects, audit_ranges');
      await connection.query(`BEGIN; ${IN_ORDER_OF_INDEX}`);
      const { fullReads, rowsRead } = await planOf(connection, statement, { large, execute: true });
      expect([known, fullReads, rowsRead < 200]).toEqual([known, [], true]);
    }
    connection.release();
  });

  it('finds a session by our id in any case', async () => {
    const { session } = await createEach();
    await ask(`GET /v1/sessions/${session}`);
    const { items } = await audit(`session=${session.toUpperCase()}`);
    expect(items.map(({ action }) => action)).toContain('GET /v1/sessions/:id');
  });

  it('finds a page for each combination of conditions', async () => {
    for (const name of ['p-a', 'p-b']) await ask(`PUT /v1/providers/${name}`, { body: person(name) });
    const action = `action=${encodeURIComponent(PUT_PROVIDER)}`;
    const found = async (query: string) => (await audit(`${action}&${query}`)).items.map(({ id }) => id);
    const [newer, older] = (await audit(action)).items;
    expect(await found(`provider=p-a&after=${Number(older?.id) - 1}`)).toEqual([older?.id]);
    expect(await found(`provider=p-a&after=${older?.id}`)).toEqual([]);
    expect(await found(`provider=p-a&subject=p-b`)).toEqual([]);
    expect(await found(`provider=p-b&subject=p-b&after=2020-01-01&before=2120-01-01`)).toEqual([newer?.id]);
    expect(await found(`provider=p-b&id=${newer?.id}`)).toEqual([newer?.id]);
    expect(await found(`provider=p-b&id=${older?.id}`)).toEqual([]);
  });
});

describe('a search of the audit log by time', () => {
  const store = (count: number, at: string) =>
    world.sql(
      `INSERT INTO audit_entries (uid, mac, key_id, key_name, action, outcome, at)
       SELECT gen_random_uuid(), '', 'k', 'k', 'a', 'ok', ${at} FROM generate_series(1, ${count}) AS n ORDER BY n`,
    );

  it('is complete although the clocks of two processes differ by ten minutes', async () => {
    await store(20, `'2026-03-01T10:00:00Z'::timestamptz + n * interval '10 seconds'`);
    await store(40, `'2026-03-01T10:03:20Z'::timestamptz - interval '10 minutes' + n * interval '20 seconds'`);
    const rows = await world.sql<{ id: string; at: Date }>(
      'SELECT id::text, at FROM audit_entries e ORDER BY e.id DESC',
    );
    const repository = world.get(AuditRepository);
    for (const { at } of rows) {
      const found = async (bounds: object) => (await repository.find(bounds, 100)).map(({ id }) => id);
      const ids = (isWanted: (row: Date) => boolean) => rows.filter((row) => isWanted(row.at)).map(({ id }) => id);
      expect(await found({ after: at.toISOString() })).toEqual(ids((other) => other >= at));
      expect(await found({ before: at.toISOString() })).toEqual(ids((other) => other < at));
    }
  });

  it('reads only the entries of that time, and few around it', async () => {
    await store(30_000, `'2026-01-01T00:00:00Z'::timestamptz + n * interval '1 day' / 1000`);
    const day = { after: '2026-01-15T00:00:00Z', before: '2026-01-16T00:00:00Z' };
    const [statement] = await statementsOf(['audit_entries'], () => world.get(AuditRepository).find(day, 2_000));
    if (!statement) throw new Error('No statement was sent.');
    const connection = await world.database.pool.connect();
    await connection.query('BEGIN; SET LOCAL enable_bitmapscan = off'); // as IN_ORDER_OF_INDEX does
    const plan = await planOf(connection, statement, { large: ['audit_entries'], execute: true });
    await connection.query('ROLLBACK');
    connection.release();
    expect(plan.fullReads).toEqual([]);
    expect(plan.rowsRead).toBeLessThan(2_000);
  });
});

describe('while the audit log accepts no entries', () => {
  /** The contents of all other tables. */
  async function digests(): Promise<unknown[]> {
    const tables = await world.sql<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
         AND relname NOT IN ('workers', '_prisma_migrations') AND relname NOT LIKE 'audit_%' ORDER BY 1`,
    );
    const digest = ({ name }: { name: string }) =>
      `SELECT '${name}' AS name, md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) AS digest FROM ${name} t`;
    return world.sql(tables.map(digest).join(' UNION ALL '));
  }

  afterEach(() => world.sql('DROP FUNCTION refuse CASCADE'));

  it('every request gets 503, nothing is read or changed, and health is down', async () => {
    const rows = rowsFor(await createEach());
    // Readers number events and changed sessions.
    await ask('GET /v1/events');
    await ask('GET /v1/sessions');
    await world.sql(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
      CREATE TRIGGER refuse BEFORE INSERT ON audit_entries FOR EACH STATEMENT EXECUTE FUNCTION refuse()`);
    // The URL of a recording is fetched to know whether there is one.
    const calls = () => world.platform.arrivals() - world.platform.arrivals('getSession');
    const [callsBefore, before] = [calls(), await digests()];
    for (const [line, , , asked] of rows) {
      const { status, problem } = await ask(line, asked);
      expect([line, status, problem]).toEqual([line, 503, 'audit-unavailable']);
    }
    for (const [outcome, asked] of UNREAD) {
      expect([outcome, (await ask(UNREAD_LINE, asked)).status]).toEqual([outcome, 503]);
    }
    expect([calls(), await digests()]).toEqual([callsBefore, before]);
    expect((await ask('GET /v1/clients', { key: 'wrong' })).status).toBe(401);
    const { checks } = (await ask<HealthReport>('GET /health/ready')).body;
    expect(checks.audit).toMatchObject({ status: 'down', reason: expect.stringContaining('cannot be written') });
  });
});
