import { Logger } from '@nestjs/common';
import { canary, Searcher } from '../../harness/canaries.js';
import { dumpOf } from '../../harness/database-dump.js';
import { MemoryQueue } from '../../harness/memory-queue/memory-queue.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { ImportResponse } from '../../src/imports/api/import-view.js';
import { ADMIN_KEY } from '../support/app.js';
import { mirroredPeople, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld({
  settings: {
    PLATFORM_PARTNER_DOMAIN: 'https://recorder.example.org',
    REDIRECT_ALLOWED_ORIGINS: 'https://ehr.example.org',
  },
});

/** Answers that hold neither a name nor a text, for every caller. */
const PLACES = ['/v1/events?limit=200', '/v1/audit?limit=200', '/metrics', '/health/ready', '/v1/webhook-deliveries'];
const LEVELS = ['verbose', 'debug', 'log', 'warn', 'error', 'fatal'] as const;

let logged: jest.SpyInstance[];
let jobs: jest.SpyInstance;
let refusals: string[];

beforeEach(() => {
  logged = LEVELS.map((level) => jest.spyOn(Logger.prototype, level));
  jobs = jest.spyOn(MemoryQueue.prototype, 'add');
  refusals = [];
});

const textOf = (value: unknown): string =>
  value instanceof Error ? `${value.stack} ${JSON.stringify(value)} ${textOf(value.cause)}` : JSON.stringify(value);
const saidTo = (spies: jest.SpyInstance[]) => spies.flatMap(({ mock }) => mock.calls.flat().map(textOf)).join('\n');

/** Sends one request as the EHR does and keeps the answer when it is a refusal. */
async function ask(method: string, path: string, body?: unknown, type = 'application/json') {
  const isRaw = typeof body === 'string' || body instanceof FormData;
  const asking = fetch(`${world.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${ADMIN_KEY}`,
      ...(body !== undefined && !(body instanceof FormData) && { 'content-type': type }),
    },
    ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
  });
  const answer = await world.workWhile(asking);
  const text = await answer.text();
  if (answer.status >= 400) refusals.push(text);
  return { status: answer.status, text };
}

/** Finds canaries and secrets in tables, log lines, jobs, errors, metrics and open answers. */
async function leaks(secrets: Record<string, string> = {}): Promise<[place: string, finds: string[]][]> {
  await world.settle();
  const places: Record<string, string> = {
    tables: await dumpOf(world.database.url),
    log: saidTo(logged),
    jobs: saidTo([jobs]),
    refusals: refusals.join('\n'),
  };
  for (const path of PLACES) places[path] = (await world.call('GET', path)).text;
  expect(places.tables).not.toBe('');
  const searcher = new Searcher(secrets);
  return Object.entries(places).flatMap(([place, text]) => {
    const finds = searcher.finds(text);
    return finds.length > 0 ? [[place, finds] as [string, string[]]] : [];
  });
}

const person = (name: string) => ({
  firstName: canary(`First${name}`),
  lastName: canary(`Last${name}`),
  email: `${canary(`Mail${name}`)}@clinic.example`,
});

it('finds a canary in every spelling, and a secret', () => {
  const word = canary('Word');
  const base64 = ['', 'a', 'ab'].map((before) => Buffer.from(`${before}${word} and more`).toString('base64url'));
  const hex = Buffer.from(word).toString('hex');
  const searcher = new Searcher({ token: 'f3a9c1d27b' });
  for (const text of [word, word.toLowerCase(), word.toUpperCase(), hex, ...base64, 'f3a9c1d27b']) {
    expect([text, searcher.finds(`x ${text} y`).length]).toEqual([text, 1]);
  }
  expect(searcher.finds('Zeisig q7')).toEqual([]);
});

it('people: their names and addresses are only on the platform', async () => {
  await ask('PUT', '/v1/providers/p-8', person('P'));
  await ask('PUT', '/v1/clients/c-8', { ...person('C'), providers: ['p-8'] });
  await world.settle();
  expect(world.platform.usersOf('c-8')).toMatchObject([{ firstName: canary('FirstC') }]);
  await ask('POST', '/v1/people/search', { email: person('C').email });
  await ask('POST', '/v1/people/names', { providers: ['p-8'], clients: ['c-8', canary('NoClient')] });
  await ask('PUT', '/v1/clients/c-9', { ...person('Twin'), email: person('C').email, providers: ['p-8'] });
  await ask('PUT', '/v1/clients/c-9', { ...person('Wrong'), phone: canary('Phone'), providers: [] });
  await ask('PUT', '/v1/clients/c-9', `{"firstName": "${canary('Broken')}`);
  await ask('GET', `/v1/clients/${canary('Path')}?state=${canary('Query')}`);
  world.platform.injectFault({ kind: 'commit-then-500', operation: 'createProvider' });
  await ask('PUT', '/v1/providers/p-9', person('Unclear'));
  expect(refusals.length).toBeGreaterThan(2);
  expect(await leaks()).toEqual([]);
});

it('sessions and notes: their texts are only on the platform', async () => {
  await mirroredPeople(world);
  const body = {
    provider: 'p-1',
    client: 'c-1',
    noteTemplateIds: [SOAP],
    input: { text: { text: canary('Dictated') } },
    externalTreatmentPlan: canary('Plan'),
    partnerAppointmentId: 'visit-1',
  };
  expect((await ask('POST', '/v1/sessions', body)).status).toBeLessThan(300);
  await world.settle();
  const { state } = world.platform.simulator;
  const [session] = state.sessions.list();
  while (session?.nextStep) takeStep(state, session);
  await world.settle();
  const { text } = await ask('GET', `/v1/sessions/${session?.sessionId}/notes`);
  expect(text).toContain(canary('Dictated'));
  await ask('PATCH', `/v1/sessions/${session?.sessionId}`, { externalTreatmentPlan: [canary('PlanList')] });
  await ask('POST', '/v1/sessions', { ...body, client: canary('Client'), date: canary('Date') });
  world.platform.injectFault({ kind: 'commit-then-cut', operation: 'createSession' });
  await ask('POST', '/v1/sessions', { ...body, partnerAppointmentId: 'visit-2' });
  expect(refusals.length).toBeGreaterThan(1);
  expect(await leaks()).toEqual([]);
});

it('webhooks: the words of an event are kept only encrypted', async () => {
  const { deliveries } = world.platform.simulator.state;
  const tell = (event: object) => deliveries.send(event as never);
  const extra = { note: canary('EventExtra') };
  tell({ eventType: 'SESSION_CREATED', sessionId: 's-9', providerUserId: 'u-9', ...extra });
  tell({ eventType: 'SESSION_PROCESSING_FAILED', sessionId: 's-9', error: { message: canary('Message') } });
  tell({ eventType: 'USER_CREATED', payload: { userId: 'u-8', role: canary('Role'), ...person('User') } });
  tell({ eventType: `${canary('EventType')} of an unknown kind`, payload: extra });
  await world.settle();
  expect(await world.sql('SELECT count(*)::int AS n FROM webhook_deliveries')).toEqual([{ n: 4 }]);
  expect((await ask('POST', '/webhooks/platform', `{"eventType": "${canary('Unsigned')}`)).status).toBe(401);
  expect(await leaks()).toEqual([]);
});

it('imports: the cells of a file, accepted or rejected, are kept only encrypted', async () => {
  await mirroredPeople(world);
  const line = (id: string, { email, firstName, lastName } = person(id)) => `${id},${email},${firstName},${lastName}`;
  const csv = [
    `externalId,email,firstName,lastName,providers,Therapist ${canary('Column')}`,
    `${line('c-20')},p-1,${canary('Cell')}`,
    `c-21,${canary('NotAMail')},${canary('First')},${canary('Last')},p-1,x`,
    `${line('c-22')},${canary('Provider')},x`,
    `${line('c-23')},,x`,
  ].join('\n');
  expect((await ask('POST', '/v1/imports?kind=clients', csv, 'text/csv')).status).toBe(202);
  await world.settle();
  expect(world.platform.usersOf('c-20')).toHaveLength(1);
  const [{ id } = { id: '' }] = await world.sql<{ id: string }>('SELECT id FROM imports');
  for (const part of ['', '/rows', '/rejected.csv']) await ask('GET', `/v1/imports/${id}${part}`);
  await ask('POST', `/v1/imports?kind=${canary('Kind')}`, csv, 'text/csv');
  await ask('POST', '/v1/imports?kind=clients', `${canary('NoHeader')},${canary('NorHere')}\nAnn,Lee`, 'text/csv');
  expect(refusals.length).toBeGreaterThan(1);
  expect(await leaks()).toEqual([]);
});

it('imports: the records of a file that waits for its columns are stored encrypted', async () => {
  const columns = `MRN,Chart ID,First Name,Last Name,Email,Ward`;
  const { email, firstName, lastName } = person('Waiting');
  const line = `7,c-30,${firstName},${lastName},${email},${canary('Cell')}`;
  const broken = `"${canary('Broken')}" x,c-31,Ann`;
  const files = [columns, line, broken].join('\n');
  const { text } = await ask('POST', '/v1/imports?kind=clients', files, 'text/csv');
  const { id, state } = JSON.parse(text) as ImportResponse;
  expect([state, await world.sql('SELECT count(*)::int AS n FROM import_records')]).toEqual([
    'needs-mapping',
    [{ n: 1 }],
  ]);
  await world.settle();
  expect((await ask('GET', `/v1/imports/${id}`)).text).toContain('Chart ID');
  await ask('POST', `/v1/imports/${id}/mapping`, { columns: { externalId: canary('Choice') } });
  expect(await leaks()).toEqual([]);
  await ask('POST', `/v1/imports/${id}/mapping`, { columns: { externalId: 'Chart ID' } });
  await world.settle();
  expect([await world.sql('SELECT FROM import_records'), await leaks()]).toEqual([[], []]);
});

it('compliance: documents, their names and criteria are kept only encrypted', async () => {
  const form = (name: string, content: string) => {
    const parts = new FormData();
    parts.append(name, new Blob([content], { type: 'application/pdf' }), `${canary('PdfName')}.pdf`);
    return parts;
  };
  const pdf = `%PDF-1.7\n1 0 obj\n<< /Title (${canary('PdfText')}) >>\nendobj\n`;
  expect((await ask('POST', '/v1/compliance/jobs', form('files', pdf))).status).toBeLessThan(300);
  await world.settle();
  expect(world.platform.simulator.state.complianceJobs.size).toBe(1);
  await ask('POST', '/v1/compliance/jobs', form('files', canary('NoPdf')));
  await ask('POST', '/v1/compliance/jobs', form(canary('Field'), pdf));
  await ask('POST', '/v1/compliance/jobs', {
    files: [{ id: canary('FileId'), url: `https://x.example/${canary('Url')}` }],
  });
  expect(refusals).toHaveLength(2);
  expect(await leaks()).toEqual([]);
});

it('the recorder: its token and where it returns to are kept nowhere', async () => {
  await mirroredPeople(world);
  const launch = { provider: 'p-1', client: 'c-1', variant: 'virtual' };
  const redirectUrl = `https://ehr.example.org/back?patient=${canary('Redirect')}`;
  const { status, text } = await ask('POST', '/v1/recorder/launches', { ...launch, redirectUrl });
  expect([status, text]).toEqual([expect.any(Number), expect.stringContaining('sessionToken')]);
  const token = new URL(JSON.parse(text).url).searchParams.get('sessionToken') ?? '';
  await ask('POST', '/v1/recorder/launches', { ...launch, redirectUrl: `https://evil.example/${canary('Elsewhere')}` });
  await ask('POST', '/v1/recorder/launches', { ...launch, redirectUrl: canary('NoUrl') });
  expect(refusals).toHaveLength(2);
  expect(await leaks({ 'recorder token': token })).toEqual([]);
});
