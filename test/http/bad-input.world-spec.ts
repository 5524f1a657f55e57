import { dumpOf } from '../../harness/database-dump.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import { deliver, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

const UUID = '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
const HASH = expect.stringMatching(/^[0-9a-f]{70}$/);
const ADMIN = { authorization: 'Bearer admin-key-of-the-notebridge-tests' };
const cursor = (...key: unknown[]) => Buffer.from(JSON.stringify(key)).toString('base64url');

interface ProblemBody {
  type: string;
  pointer?: string;
}

interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  components: { securitySchemes: unknown };
}

interface Operation {
  summary?: string;
  parameters?: { in: string; name: string }[];
  requestBody?: { content: Record<string, { schema: { properties?: object } }> };
}

interface AuditEntry {
  action: string;
  outcome: string;
  subjects: Record<string, string[]>;
}

const world = useWorld();

async function ask(method: string, path: string, body?: unknown): Promise<[number, string | undefined]> {
  const answer = await world.call<ProblemBody>(method, path, { body });
  return [answer.status, answer.body?.type?.replace('urn:notebridge:problem:', '')];
}

const audited = async (action: string) =>
  (await world.call<{ items: AuditEntry[] }>('GET', `/v1/audit?${new URLSearchParams({ action })}`)).body.items;

const description = async () => (await world.call<OpenApi>('GET', '/openapi.json')).body;

const newProvider = () =>
  world.call('PUT', '/v1/providers/p-1', {
    body: { email: 'ada@clinic.example', firstName: 'Ada', lastName: 'Osei' },
    wait: 60,
  });

/** Uploads files of providers as a dry run. */
async function upload(files: Record<string, string>): Promise<{ status: number; json: ImportResponse; text: string }> {
  const form = new FormData();
  for (const [name, content] of Object.entries(files))
    form.append('providers', new Blob([content], { type: 'text/csv' }), name);
  const init = { method: 'POST', headers: ADMIN, body: form };
  const answer = await fetch(`${world.url}/v1/imports?kind=providers&dryRun=true`, init);
  const text = await answer.text();
  await world.settle();
  return { status: answer.status, json: JSON.parse(text), text };
}

describe('a value that the database cannot store', () => {
  test('is 400 in a body', async () => {
    const body = { action: 'link', platformUserId: 'a\0b' };
    expect(await ask('POST', '/v1/clients/c-1/resolve', body)).toEqual([400, 'validation']);
  });

  test('fails no route, anywhere in the URL', async () => {
    const reads = Object.entries((await description()).paths).filter(
      ([path, { get }]) => path.startsWith('/v1/') && get,
    );
    expect(reads.length).toBeGreaterThan(20);
    for (const [pattern, { get }] of reads) {
      const path = pattern.replace(/\{\w+\}/g, '%00');
      const queries = get?.parameters?.filter((parameter) => parameter.in === 'query').map(({ name }) => name) ?? [];
      for (const query of ['', ...queries.map((name) => `?${name}=%00`)])
        expect(`${path}${query} ${(await ask('GET', path + query))[0]}`).toMatch(/ [24]\d\d$/);
    }
  });

  test('is in the audit log as a hash', async () => {
    await ask('GET', '/v1/sessions/a%00b/notes');
    expect(await audited('GET /v1/sessions/:id/notes')).toMatchObject([
      { outcome: 'bad-value', subjects: { path: [HASH] } },
    ]);
  });
});

test.each([
  ['/v1/providers', cursor('a\0b')],
  ['/v1/people/unknown-to-ehr', cursor('\0')],
  ['/v1/sessions', cursor('2026-02-31', UUID)],
  ['/v1/api-keys', cursor('2026-02-30T00:00:00.000Z', UUID)],
  ['/v1/webhook-deliveries', cursor('x')],
  ['/v1/events', cursor('1')],
])('%s rejects a cursor that it did not make', async (path, made) => {
  expect(await ask('GET', `${path}?cursor=${made}`)).toEqual([400, 'bad-cursor']);
});

test('2026-02-31 is not a date', async () => {
  expect(await ask('GET', '/v1/sessions?updatedSince=2026-02-31')).toEqual([400, 'validation']);
  expect(await ask('POST', '/v1/sessions/refreshes', { since: '2026-02-31' })).toEqual([400, 'validation']);
});

describe('POST /v1/people/search', () => {
  test.each([
    [{}, '/email'],
    [{ email: { a: 1 }, externalId: 5 }, '/email'],
    [{ email: 'ada@clinic.example', externalId: 5 }, '/externalId'],
    [{ email: null, externalId: 'p-1' }, '/email'],
    [{ externalId: 'a\0b' }, '/externalId'],
    [{ externalId: '\ud800' }, '/externalId'],
  ])('rejects %j at %s', async (body, pointer) => {
    const answer = await world.call<ProblemBody>('POST', '/v1/people/search', { body });
    expect([answer.status, answer.body.pointer]).toEqual([400, pointer]);
  });

  test('needs only one of the two fields', async () => {
    await newProvider();
    for (const body of [{ email: 'ada@clinic.example' }, { externalId: 'p-1' }]) {
      const answer = await world.call<{ items: unknown[] }>('POST', '/v1/people/search', { body });
      expect(answer.body.items).toMatchObject([{ externalId: 'p-1' }]);
    }
  });
});

test.each([
  ['GET', '/v1/imports/x'],
  ['POST', '/v1/imports/x/pause'],
  ['GET', '/v1/imports/%00/rejected.csv'],
  ['DELETE', '/v1/api-keys/x'],
])('%s %s says that the id is not a UUID', async (method, path) => {
  expect(await ask(method, path)).toEqual([400, 'bad-id']);
});

test('every read of names and addresses is in the audit log', async () => {
  await newProvider();
  const { id } = (await upload({ 'providers.csv': 'externalId,email,firstName,lastName\np-2,nobody,A,B\n' })).json;
  const reads: [path: string, action: string, outcome: string, subjects: object][] = [
    ['/v1/providers/p-1', 'GET /v1/providers/:externalId', 'ok', { provider: ['p-1'] }],
    ['/v1/providers', 'GET /v1/providers', 'ok', { provider: ['p-1'] }],
    ['/v1/clients', 'GET /v1/clients', 'ok', {}],
    ['/v1/clients/noor@mail.example', 'GET /v1/clients/:externalId', 'client-not-found', { path: [HASH] }],
    [`/v1/imports/${id}/rejected.csv`, 'GET /v1/imports/:id/rejected.csv', 'ok', { import: [id] }],
  ];
  for (const [path, action, outcome, subjects] of reads) {
    await world.call('GET', path);
    expect((await audited(action))[0]).toMatchObject({ outcome, subjects });
  }
});

test('the names of imported files are shown, and stored encrypted', async () => {
  const columns = 'externalId,email,firstName,lastName';
  const { json } = await upload({
    'providers of Dr. Roe.csv': `${columns},Roe's room,Ward\np-3,nobody,A,B,1,2\n`,
    'providers of Dr. Doe.csv': `${columns}\np-4,nobody,A,B\n`,
  });
  const path = `/v1/imports/${json.id}`;
  const { body: rows } = await world.call<{ items: object[] }>('GET', `${path}/rows`);
  expect(rows.items).toMatchObject([
    { file: 'providers of Dr. Roe.csv', line: 2 },
    { file: 'providers of Dr. Doe.csv', line: 2 },
  ]);
  const { body: view } = await world.call<ImportResponse>('GET', path);
  const ignored = view.files[0]?.mapping?.columns.filter(({ field }) => field === null);
  expect(ignored?.map(({ name }) => name)).toEqual(["Roe's room", 'Ward']);
  expect((await world.call('GET', `${path}/rejected.csv`)).text).toContain('providers of Dr. Roe.csv,2,');
  const broken = await upload({ 'providers of Dr. Roe.csv': 'nothing\n' });
  expect([broken.status, broken.text]).toEqual([422, expect.stringMatching(/Dr\. Roe\.csv, line 1: /)]);
  // Characters that base64 does not have: an encrypted value cannot contain them by chance.
  expect(await dumpOf(world.database.url)).not.toMatch(/Dr\. |Roe's/);
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
])('a genuine event with an id that cannot be stored is not retried (%#)', async (event) => {
  expect((await deliver(world, signed(JSON.stringify(event)))).status).toBe(204);
  await world.settle();
  const { body } = await world.call<{ items: { state: string }[] }>('GET', '/v1/webhook-deliveries');
  expect(body.items).toEqual([
    { ...body.items[0], state: expect.stringMatching(/^(processed|ignored|not-understood)$/) },
  ]);
});

describe('the description of the API', () => {
  test('has a short summary of every operation, and the key that it needs', async () => {
    const { paths, components } = await description();
    const silent = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { summary }]) =>
        summary && /^.{1,72}$/.test(summary) ? [] : [`${method} ${path}`],
      ),
    );
    expect(silent).toEqual([]);
    expect(components.securitySchemes).toMatchObject({
      bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'API key' },
    });
  });

  test.each([
    ['/v1/compliance/jobs', 'multipart/form-data: files,criteria,criteriaGroups; application/json: '],
    [
      '/v1/imports',
      'text/csv: ; application/x-ndjson: ; application/fhir+ndjson: ; application/fhir+json: ; multipart/form-data: providers,clients',
    ],
    ['/v1/recordings', 'audio/*: ; video/*: ; application/octet-stream: '],
  ])('names each media type of POST %s, and the parts of a form', async (path, described) => {
    const content = Object.entries((await description()).paths[path]?.post?.requestBody?.content ?? {});
    const parts = content.map(([type, { schema }]) => `${type}: ${Object.keys(schema.properties ?? {})}`);
    expect(parts.join('; ')).toBe(described);
  });
});
