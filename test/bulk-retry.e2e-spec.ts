import type { ImportFile, Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import {
  clientLine,
  clientsCsv,
  imported,
  importIs,
  planned,
  providerLine,
  providersCsv,
  rejectedCsv,
  rowsOf,
} from './support/bulk.js';
import { query } from './support/databases.js';
import type { Mirror } from './support/service.js';
import { useSharedService } from './support/shared-service.js';

// A client without an email whose create counts as lost would be somebody's to resolve.
const shared = useSharedService({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });

const post = async (service: Service, id: string, verb: 'apply' | 'retry') => {
  const { status } = await service.call('POST', `/v1/imports/${id}/${verb}`, { body: {} });
  expect([verb, Math.floor(status / 100)]).toEqual([verb, 2]);
  return importIs(service, id, 'completed');
};

const rejectedOf = async (service: Service, id: string): Promise<string[]> =>
  (await rejectedCsv(service, id)).split('\r\n');

const gone = async (service: Service, path: string) => {
  await service.call('DELETE', `/v1/${path}`);
  await becomes(service, path, 'deleted');
};

/** Wants somebody so, and waits until the platform has it, or somebody is asked. @param to more of the path */
const put = async (service: Service, path: string, body: object, state = 'synced', to = '') => {
  await service.call('PUT', `/v1/${path}${to}`, { body });
  await becomes(service, path, state);
};

const becomes = (service: Service, path: string, state: string) =>
  until(`${path} is ${state}`, async () => {
    const { body } = await service.call<PersonResponse>('GET', `/v1/${path}`, { wait: 1 });
    return body.sync.state === state;
  });

const wards = (lines: string[]): ImportFile => ({
  name: 'clients.csv',
  type: 'text/csv',
  content: ['Ward;MRN;Given Name;Family Name;E-Mail;Therapist', ...lines].join('\n'),
});

async function begin(): Promise<[Service, Mirror]> {
  const { mirror, service } = shared;
  await imported(service, 'kind=providers', [providersCsv(['p-1', 'p-2'].map((id) => providerLine(id)))]);
  return [service, mirror];
}

/** The imports of which cells are kept. */
async function withCells(mirror: Mirror): Promise<string[]> {
  const rows = await query<{ id: string }>(mirror.database, 'SELECT DISTINCT import_id AS id FROM import_raw_rows');
  return rows.map(({ id }) => id);
}

test('a row that only a retry rejects has its original columns in the file of rejected rows, and comes back corrected', async () => {
  const [service, mirror] = await begin();
  const plan = await planned(service, 'kind=clients&dryRun=true', [
    wards(['A;c-1;Cleo;Roe;;p-1', '=1+1;c-2;Ann;Lee;;p-2']),
  ]);
  await gone(service, 'providers/p-2');
  expect((await post(service, plan.id, 'apply')).counts).toMatchObject({ created: 1, skipped: 1 });
  expect(await withCells(mirror)).toEqual([plan.id]);
  expect((await post(service, plan.id, 'retry')).counts).toMatchObject({ created: 1, rejected: 1 });
  const [header, line] = await rejectedOf(service, plan.id);
  expect(header).toBe('Ward,MRN,Given Name,Family Name,E-Mail,Therapist,line,code,hint,check');
  expect(line).toMatch(/^'=1\+1,c-2,Ann,Lee,,p-2,3,unknown-provider,/);

  const corrected = [header, line].join('\r\n').replace('p-2', 'p-1');
  const again = await imported(service, 'kind=clients', [{ ...wards([]), content: corrected }]);
  expect(again.counts).toMatchObject({ total: 1, created: 1 });
  expect(await withCells(mirror)).toEqual([plan.id]);
});

test('one whose client was deleted says nothing any more: a retry leaves it as it is', async () => {
  const { mirror, service } = shared;
  mirror.trouble({ operation: 'createClient', kind: 'status', status: 400 });
  const { id } = await imported(service, 'kind=clients', [
    providersCsv([providerLine('p-1')]),
    clientsCsv([clientLine('c-1', ['p-1'])]),
  ]);
  expect((await rowsOf(service, id, 'outcome=failed')).map(({ externalId }) => externalId)).toEqual(['c-1']);
  await gone(service, 'clients/c-1');
  await gone(service, 'providers/p-1');
  expect((await post(service, id, 'retry')).counts).toMatchObject({ failed: 1, rejected: 0, skipped: 0 });
  expect(await rowsOf(service, id, 'outcome=failed')).toMatchObject([{ externalId: 'c-1', line: 2 }]);
  expect(
    await query(mirror.database, 'SELECT 1 FROM import_rows WHERE import_id = $1 AND profile IS NOT NULL', [id]),
  ).toEqual([]);
});

test('no other row is rejected by a retry: neither a provider’s, nor one without a list, nor one for its double', async () => {
  const [service] = await begin();
  const plan = await planned(service, 'kind=clients&dryRun=true&defaultProvider=p-1', [
    providersCsv(['p-2,p-2@example.org,Pia,New', providerLine('p-2')]),
    clientsCsv([clientLine('c-1', []), clientLine('c-1', ['p-1'])]),
  ]);
  const person = { firstName: 'Any', lastName: 'Body' };
  await put(service, 'providers/p-2', { ...person, email: 'p-2@example.org' });
  await put(service, 'clients/c-1', { ...person, providers: ['p-2'] });
  const outcomes = async () => (await rowsOf(service, plan.id)).map(({ outcome, code }) => [outcome, code]);
  const doubles = ['rejected', 'duplicate-id'];
  const skipped = ['skipped', 'changed-since-plan'];
  await post(service, plan.id, 'apply');
  expect(await outcomes()).toEqual([skipped, doubles, skipped, doubles]);
  await post(service, plan.id, 'retry');
  expect(await outcomes()).toEqual([['updated', 'not-pushable'], doubles, ['updated', null], doubles]);
});

describe('a retry leaves the providers of a client alone of whom the files do not speak', () => {
  const providersOf = async (service: Service, path: string) =>
    (await service.call<PersonResponse>('GET', `/v1/${path}`)).body.providers;
  const lines = (...resources: object[]) => resources.map((resource) => JSON.stringify(resource)).join('\n');
  const encounter = {
    resourceType: 'Encounter',
    status: 'finished',
    subject: { reference: 'Patient/c-1' },
    participant: [{ individual: { reference: 'Practitioner/p-2' } }],
  };
  const patient = { resourceType: 'Patient', id: 'c-1', name: [{ family: 'New', given: ['Cleo'] }] };

  test.each<[string, string, ImportFile, string[]]>([
    [
      'a CSV without a column of providers',
      'kind=clients',
      { name: 'clients.csv', type: 'text/csv', content: 'externalId,firstName,lastName\nc-1,Cleo,New' },
      ['p-3'],
    ],
    [
      'a FHIR Patient with an Encounter, which adds',
      'kind=fhir',
      { name: 'resources.ndjson', type: 'application/fhir+ndjson', content: lines(patient, encounter) },
      ['p-3', 'p-2'],
    ],
  ])('%s', async (_, kind, file, expected) => {
    const [service] = await begin();
    await imported(service, 'kind=clients', [
      providersCsv([providerLine('p-3')]),
      clientsCsv([clientLine('c-1', ['p-1'])]),
    ]);
    const plan = await planned(service, `${kind}&dryRun=true`, [file]);
    await put(service, 'clients/c-1', { providers: ['p-3'] }, 'synced', '/providers');
    expect((await post(service, plan.id, 'apply')).counts).toMatchObject({ skipped: 1 });
    expect((await post(service, plan.id, 'retry')).counts).toMatchObject({ updated: 1 });
    expect(await providersOf(service, 'clients/c-1')).toEqual(expected);
  });
});

test('what somebody said of a person in review since the plan stands after a retry', async () => {
  const [service] = await begin();
  const person = { firstName: 'Any', lastName: 'Body', email: 'one@example.org' };
  await put(service, 'clients/c-1', { ...person, providers: ['p-1'] });
  await put(service, 'clients/c-2', { ...person, providers: ['p-1'] }, 'needs-review');
  const plan = await imported(service, 'kind=clients', [clientsCsv(['c-2,one@example.org,Any,Body,p-1'])]);
  expect(plan.counts).toMatchObject({ needsReview: 1 });
  await put(service, 'clients/c-2', { firstName: 'New', lastName: 'Name', providers: ['p-2'] });
  expect((await post(service, plan.id, 'retry')).counts).toMatchObject({ skipped: 1 });
  const { body } = await service.call<PersonResponse>('GET', '/v1/clients/c-2');
  expect(body).toMatchObject({ firstName: 'New', email: null, providers: ['p-2'], sync: { state: 'synced' } });
});
