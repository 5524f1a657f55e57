import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { ADMIN_KEY } from './support/app.js';
import { rejectedCsv } from './support/bulk.js';
import { dumpOf } from './support/database-dump.js';
import { type Mirror, useMirrors } from './support/service.js';
import { answerTo, deliver } from './support/webhook-requests.js';

const UUID = '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
const cursor = (...key: unknown[]) => Buffer.from(JSON.stringify(key)).toString('base64url');

interface ProblemBody {
  type: string;
  pointer?: string;
}

interface OpenApi {
  paths: Record<string, { get?: { parameters?: { in: string; name: string }[] } }>;
}

interface AuditEntry {
  action: string;
  outcome: string;
  subjects: Record<string, string>;
}

const startMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await startMirror();
  service = await mirror.start();
  await service.call('PUT', '/v1/providers/p-1', {
    body: { email: 'ada@clinic.example', firstName: 'Ada', lastName: 'Osei' },
    wait: 60,
  });
});

async function ask(method: string, path: string, body?: unknown): Promise<[number, string | undefined]> {
  const answer = await service.call<ProblemBody>(method, path, { body });
  return [answer.status, answer.body.type?.replace('urn:notebridge:problem:', '')];
}

async function audited(action: string): Promise<AuditEntry[]> {
  const query = new URLSearchParams({ action });
  return (await service.call<{ items: AuditEntry[] }>('GET', `/v1/audit?${query}`)).body.items;
}

async function planned(id: string): Promise<void> {
  await until('the import is planned', async () => {
    const { body } = await service.call<ImportResponse>('GET', `/v1/imports/${id}`, { wait: 60 });
    return body.state === 'planned';
  });
}

describe('a value that the database can not take is the fault of whoever sent it', () => {
  test.each([
    '/v1/sessions/%00',
    '/v1/sessions/%00/notes',
    '/v1/sessions?provider=%00',
    '/v1/sessions?appointment=%00',
    '/v1/compliance/jobs/%00',
    '/v1/audit?subject=%00',
    '/v1/audit?keyId=%00x',
  ])('GET %s', async (path) => {
    expect(await ask('GET', path)).toEqual([400, 'bad-value']);
  });

  test('a NUL in a body', async () => {
    mirror.trouble({ operation: 'createClient', kind: 'commit-then-cut', match: { partnerUserId: 'lost' } });
    await service.call('PUT', '/v1/clients/lost', {
      body: { firstName: 'Noor', lastName: 'Haddad', providers: ['p-1'] },
      wait: 60,
    });
    const body = { action: 'link', platformUserId: 'a\0b' };
    expect(await ask('POST', '/v1/clients/lost/resolve', body)).toEqual([400, 'validation']);
  });

  test('no route fails because of one, wherever it stands', async () => {
    const { body } = await service.call<OpenApi>('GET', '/openapi.json');
    const reads = Object.entries(body.paths).filter(([path, { get }]) => path.startsWith('/v1/') && get !== undefined);
    expect(reads.length).toBeGreaterThan(20);
    for (const [pattern, { get }] of reads) {
      const path = pattern.replace(/\{\w+\}/g, '%00');
      const queries = get?.parameters?.filter((parameter) => parameter.in === 'query').map(({ name }) => name) ?? [];
      for (const query of ['', ...queries.map((name) => `?${name}=%00`)]) {
        expect(`${path}${query} ${(await ask('GET', path + query))[0]}`).toMatch(/ [24]\d\d$/);
      }
    }
  });

  test('the trail keeps such requests', async () => {
    await ask('GET', '/v1/sessions/a%00b/notes');
    expect(await audited('GET /v1/sessions/:id/notes')).toContainEqual(
      expect.objectContaining({ outcome: 'bad-value', subjects: { path: [expect.stringMatching(/^[0-9a-f]{64}$/)] } }),
    );
  });
});

test.each([
  ['/v1/providers', cursor('a\0b')],
  ['/v1/people/unknown-to-ehr', cursor('\0')],
  ['/v1/people/stuck', cursor('2026-02-31T00:00:00Z', UUID)],
  ['/v1/sessions', cursor('2026-02-31', UUID)],
  ['/v1/sessions', cursor('1', UUID)],
  ['/v1/sessions', cursor('2026-02-31T00:00:00.000Z', UUID)],
  ['/v1/api-keys', cursor('2026-02-30T00:00:00.000Z', UUID)],
  ['/v1/webhook-deliveries', cursor('x')],
])('%s refuses a cursor that it did not make (%#)', async (path, made) => {
  expect(await ask('GET', `${path}?cursor=${made}`)).toEqual([400, 'bad-cursor']);
});

it.each([
  ['after=garbage', 400, 'bad-cursor'],
  ['after=-1', 400, 'bad-cursor'],
  ['after=', 400, 'bad-cursor'],
  ['cursor=garbage', 400, 'bad-cursor'],
  [`cursor=${cursor('1')}`, 400, 'bad-cursor'],
  ['after=1&after=2', 400, 'validation'],
  ['afer=5', 400, 'validation'],
  ['after=0', 200, undefined],
  ['cursor=0', 200, undefined],
])('the feed never begins from the start because of a cursor that it did not make (%s)', async (query, ...answer) => {
  expect(await ask('GET', `/v1/events?${query}`)).toEqual(answer);
});

it('nor because of such a Last-Event-ID', async () => {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, accept: 'text/event-stream', 'last-event-id': 'garbage' };
  const answer = await answerTo(`${service.url}/v1/events`, { headers });
  expect([answer.status, ((await answer.json()) as ProblemBody).pointer]).toEqual([400, undefined]);
});

it.each(['2026-02-31', '2026-13-01', '2026-01-31T25:00:00Z'])('%s is no moment', async (moment) => {
  expect(await ask('GET', `/v1/sessions?updatedSince=${moment}`)).toEqual([400, 'validation']);
  expect(await ask('POST', '/v1/sessions/refreshes', { since: moment })).toEqual([400, 'validation']);
});

describe('POST /v1/people/search', () => {
  test.each([
    [{}, '/email'],
    [{ email: { a: 1 }, externalId: 5 }, '/email'],
    [{ email: 'ada@clinic.example', externalId: 5 }, '/externalId'],
    [{ email: null, externalId: 'p-1' }, '/email'],
    [{ externalId: 'a\0b' }, '/externalId'],
    [{ externalId: '\ud800' }, '/externalId'],
  ])('%j is refused at %s', async (body, pointer) => {
    const answer = await service.call<ProblemBody>('POST', '/v1/people/search', { body });
    expect([answer.status, answer.body.pointer]).toEqual([400, pointer]);
  });

  test('one of the two is enough', async () => {
    for (const body of [{ email: 'ada@clinic.example' }, { externalId: 'p-1' }]) {
      const answer = await service.call<{ items: unknown[] }>('POST', '/v1/people/search', { body });
      expect([answer.status, answer.body.items]).toEqual([200, [expect.objectContaining({ externalId: 'p-1' })]]);
    }
  });
});

test.each([
  ['GET', '/v1/imports/x'],
  ['POST', '/v1/imports/x/pause'],
  ['GET', '/v1/imports/%00/rejected.csv'],
  ['DELETE', '/v1/api-keys/x'],
])('%s %s says that the id is no UUID', async (method, path) => {
  expect(await ask(method, path)).toEqual([400, 'bad-id']);
});

test('whoever read names and addresses is on record', async () => {
  const { id } = await service.startImport('kind=providers&dryRun=true', [
    { name: 'providers.csv', type: 'text/csv', content: 'externalId,email,firstName,lastName\np-2,nobody,A,B\n' },
  ]);
  await planned(id);
  await service.call('GET', '/v1/providers/p-1');
  await service.call('GET', '/v1/providers');
  await service.call('GET', '/v1/clients');
  await service.call('GET', '/v1/clients/noor@mail.example');
  await rejectedCsv(service, id);
  const reads = [
    ['GET /v1/providers/:externalId', 'ok', { provider: ['p-1'] }],
    ['GET /v1/providers', 'ok', { provider: ['p-1'] }],
    ['GET /v1/clients', 'ok', {}],
    ['GET /v1/clients/:externalId', 'client-not-found', { path: [expect.stringMatching(/^[0-9a-f]{64}$/)] }],
    ['GET /v1/imports/:id/rejected.csv', 'ok', { import: [id] }],
  ] as const;
  for (const [action, outcome, subjects] of reads) {
    expect(await until(`${action} is on record`, async () => (await audited(action))[0])).toMatchObject({
      outcome,
      subjects,
    });
  }
});

test('what the files of an import are called is shown, and kept sealed', async () => {
  const columns = 'externalId,email,firstName,lastName';
  const { id } = await service.startImport('kind=providers&dryRun=true', [
    { name: 'providers of Dr. Roe.csv', type: 'text/csv', content: `${columns},Roe's room,Ward\np-3,nobody,A,B,1,2\n` },
    { name: 'providers of Dr. Doe.csv', type: 'text/csv', content: `${columns}\np-4,nobody,A,B\n` },
  ]);
  await planned(id);
  const rows = await service.call<{ items: { file: string; line: number }[] }>('GET', `/v1/imports/${id}/rows`);
  expect(rows.body.items.map(({ file, line }) => [file, line])).toEqual([
    ['providers of Dr. Roe.csv', 2],
    ['providers of Dr. Doe.csv', 2],
  ]);
  const { body: view } = await service.call<ImportResponse>('GET', `/v1/imports/${id}`);
  expect(view.ignoredColumns).toEqual([{ file: 'providers of Dr. Roe.csv', columns: ['Ward'] }]);
  expect((await rejectedCsv(service, id)).split('\r\n')[0]).toContain("Roe's room");
  const broken = [{ name: 'providers of Dr. Roe.csv', type: 'text/csv', content: 'nothing\n' }];
  await expect(service.startImport('kind=providers', broken)).rejects.toThrow(/422.*Dr\. Roe.*File 1, line 1/);
  // With what base64 can't hold: three letters alone stand in a sealed value by chance.
  expect(await dumpOf(mirror.database.url)).not.toMatch(/Dr\. |Roe's/);
});

test.each([
  { eventType: 'PROCESSING_SESSION_NOTES_FINISHED', payload: { sessionId: 'a\0b', processingId: '\ud800' } },
  { eventType: 'PROCESSING_SESSION_FINISHED', payload: { processingId: 'a\0b' } },
  { eventType: 'SESSION_CREATED', sessionId: 's-1', providerUserId: 'p\0' },
  { eventType: 'SESSION_CREATED', sessionId: 's-1', providerUserId: 'p-1', partnerAppointmentId: '\0' },
  { eventType: 'COMPLIANCE_JOB_COMPLETED', payload: { jobId: '\0' } },
  { eventType: 'SMART_EDIT_JOB_FAILED', payload: { jobId: '\0' } },
  { eventType: 'USER_CREATED', payload: { userId: 'u\0', role: 'Client' } },
  { eventType: 'USER_CREATED', payload: { userId: 'u', externalUserId: 'c\ud800', role: 'Client' } },
])('a genuine event with an id that can not be kept is never tried for ever (%#)', async (event) => {
  const body = Buffer.from(JSON.stringify(event));
  const timestamp = String(Date.now());
  const headers = {
    'x-service-timestamp': timestamp,
    'x-service-signature': signWebhook('webhook-secret-of-the-tests', timestamp, body),
  };
  const { status } = await deliver(service, { method: 'POST', headers, body });
  expect(status).toBe(204);
  const states = await until('it is settled', async () => {
    const list = await service.call<{ items: { state: string }[] }>('GET', '/v1/webhook-deliveries');
    const all = list.body.items.map(({ state }) => state);
    return all.includes('received') ? undefined : all;
  });
  expect(states).not.toContain('failed');
});

test('every route says in one short line what it does, and that it takes a key', async () => {
  const { body } = await service.call<{
    paths: Record<string, Record<string, { summary?: string }>>;
    components: { securitySchemes: unknown };
  }>('GET', '/openapi.json');
  const silent = Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { summary }]) =>
      summary && /^.{1,72}$/.test(summary) ? [] : [`${method} ${path}`],
    ),
  );
  expect(silent).toEqual([]);
  expect(body.components.securitySchemes).toMatchObject({
    bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'API key' },
  });
});

test.each<[string, Record<string, string[]>]>([
  ['/v1/compliance/jobs', { 'multipart/form-data': ['files', 'criteria', 'criteriaGroups'], 'application/json': [] }],
  [
    '/v1/imports',
    {
      'text/csv': [],
      'application/x-ndjson': [],
      'application/fhir+ndjson': [],
      'application/fhir+json': [],
      'multipart/form-data': ['providers', 'clients'],
    },
  ],
  ['/v1/recordings', { 'audio/*': [], 'video/*': [], 'application/octet-stream': [] }],
])('POST %s describes each media type that it takes, and the parts of a form', async (path, described) => {
  type Media = Record<string, { schema: { properties?: object } }>;
  const { body } = await service.call<{
    paths: Record<string, { post?: { requestBody?: { content: Media } } }>;
  }>('GET', '/openapi.json');
  const content = body.paths[path]?.post?.requestBody?.content ?? {};
  const parts = Object.entries(content).map(([type, { schema }]) => [type, Object.keys(schema.properties ?? {})]);
  expect(Object.fromEntries(parts)).toEqual(described);
});
