import type { ImportFile, Service } from '../harness/service.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { clientsCsv, imported, planned, providerLine, providersCsv, rejectedCsv, rowsOf } from './support/bulk.js';
import { useSharedService } from './support/shared-service.js';

const NPI = 'http://hl7.org/fhir/sid/us-npi';

const shared = useSharedService({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });

const practitioner = (id: string) => ({
  resourceType: 'Practitioner',
  id,
  identifier: [{ system: NPI, value: `npi-${id}` }],
  name: [{ family: id, given: ['Pia'] }],
  telecom: [{ system: 'email', value: `${id}@example.org` }],
});
const patient = (id: string, ...general: string[]) => ({
  resourceType: 'Patient',
  id,
  name: [{ family: id, given: ['Cleo'] }],
  ...(general.length > 0 && { generalPractitioner: general.map((reference) => ({ reference })) }),
});
const encounter = (client: string, provider: string, day = '2026-11-01') => ({
  resourceType: 'Encounter',
  status: 'finished',
  subject: { reference: `Patient/${client}` },
  period: { start: day },
  participant: [{ individual: { reference: provider } }],
});
const team = (client: string, provider: string, more: object = {}) => ({
  resourceType: 'CareTeam',
  subject: { reference: `Patient/${client}` },
  participant: [{ member: { reference: provider } }],
  ...more,
});

const ndjson = (...resources: object[]): ImportFile[] => [
  {
    name: 'resources.ndjson',
    type: 'application/fhir+ndjson',
    content: resources.map((resource) => JSON.stringify(resource)).join('\n'),
  },
];

async function listOf(service: Service, client: string): Promise<string[] | undefined> {
  return (await service.call<PersonResponse>('GET', `/v1/clients/${client}`)).body.providers;
}

test('an upsert adds the providers of encounters and teams, is replaced by general practitioners, and leaves others alone', async () => {
  const { service } = shared;
  const all = ['p-1', 'p-2', 'p-3'].map(practitioner);
  await imported(service, 'kind=fhir', ndjson(...all, patient('c-1', 'Practitioner/p-1', 'Practitioner/p-2')));
  const lists: (string[] | undefined)[] = [];
  const send = async (query: string, ...resources: object[]) => {
    await imported(service, query, ndjson(...resources));
    lists.push(await listOf(service, 'c-1'));
  };
  await send('kind=fhir', patient('c-1'), encounter('c-1', 'Practitioner/p-3'));
  await send('kind=fhir&defaultProvider=p-3', { ...patient('c-1'), name: [{ family: 'Roe', given: ['Cleo'] }] });
  await send('kind=fhir', patient('c-1', 'Practitioner/p-3'), team('c-1', 'Practitioner/p-1'));
  expect(lists).toEqual([
    ['p-1', 'p-2', 'p-3'],
    ['p-1', 'p-2', 'p-3'],
    ['p-3', 'p-1'],
  ]);
  const snapshot = await planned(
    service,
    'kind=fhir&mode=snapshot',
    ndjson(...all, patient('c-1'), encounter('c-1', 'Practitioner/p-2')),
  );
  await service.call('POST', `/v1/imports/${snapshot.id}/apply`, { body: { override: ['providerRemovals'] } });
  await service.importEnded(snapshot.id);
  expect(await listOf(service, 'c-1')).toEqual(['p-2']);
});

test('an upsert of CSV without a column of providers leaves them alone, one with an empty cell does not', async () => {
  const { service } = shared;
  const file = clientsCsv(['c-1,,Cleo,Roe,p-1|p-2']);
  await imported(service, 'kind=clients', [providersCsv(['p-1', 'p-2'].map((id) => providerLine(id))), file]);
  await imported(service, 'kind=clients&defaultProvider=p-1', [
    { ...file, content: 'externalId,firstName,lastName\nc-1,Cleo,New\nc-2,Ann,New\n' },
  ]);
  expect([await listOf(service, 'c-1'), await listOf(service, 'c-2')]).toEqual([['p-1', 'p-2'], ['p-1']]);
  await imported(service, 'kind=clients&defaultProvider=p-1', [clientsCsv(['c-1,,Cleo,New,'])]);
  expect(await listOf(service, 'c-1')).toEqual(['p-1']);
});

test('care that has ended gives no provider, and none is primary by it', async () => {
  const { service } = shared;
  await imported(
    service,
    'kind=fhir',
    ndjson(
      ...['p-1', 'p-2', 'p-3', 'p-4', 'p-5'].map(practitioner),
      { resourceType: 'PractitionerRole', id: 'r-4', active: false, practitioner: { reference: 'Practitioner/p-4' } },
      {
        resourceType: 'PractitionerRole',
        id: 'r-5',
        period: { end: '2020' },
        practitioner: { reference: 'Practitioner/p-5' },
      },
      patient('c-1'),
      team('c-1', 'Practitioner/p-2', { status: 'inactive', period: { start: '1991' } }),
      team('c-1', 'Practitioner/p-3', { status: 'active', period: { start: '1991', end: '1995' } }),
      team('c-1', 'PractitionerRole/r-4'),
      team('c-1', 'PractitionerRole/r-5'),
      encounter('c-1', 'Practitioner/p-1', '2026-10-01'),
      encounter('c-1', 'Practitioner/p-5', '2024-10-01'),
    ),
  );
  expect(await listOf(service, 'c-1')).toEqual(['p-1']);
});

test('patients that come later find practitioners by identifiers and roles of an earlier import', async () => {
  const { service } = shared;
  const dry = await planned(service, 'kind=fhir&dryRun=true', ndjson(practitioner('p-1'), practitioner('p-2')));
  expect(dry.planned).toEqual({ 'create-or-link': 2 });
  await imported(service, 'kind=fhir', ndjson(practitioner('p-1'), practitioner('p-2')));
  await imported(
    service,
    'kind=fhir',
    ndjson(patient('c-0', 'Practitioner/p-1'), {
      resourceType: 'PractitionerRole',
      id: 'r-2',
      practitioner: { identifier: { system: NPI, value: 'npi-p-2' } },
    }),
  );
  const ended = await imported(
    service,
    'kind=fhir',
    ndjson(patient('c-1', `Practitioner?identifier=${NPI}|npi-p-1`, 'PractitionerRole/r-2')),
  );
  expect(ended.counts).toMatchObject({ created: 1, rejected: 0 });
  expect(await listOf(service, 'c-1')).toEqual(['p-1', 'p-2']);
});

test('a reference that leads to nobody is told as one, by its form; a rejected client keeps whom it named', async () => {
  const { service } = shared;
  const { id } = await planned(
    service,
    'kind=fhir&dryRun=true',
    ndjson(practitioner('p-1'), patient('c-1', 'PractitionerRole/none'), patient('c-2'), {
      ...patient('c-3', 'Practitioner/p-1'),
      name: [{ text: 'Ada May Osei' }],
    }),
  );
  const rows = await rowsOf(service, id, 'outcome=rejected');
  expect(rows.map((row) => [row.externalId, row.code])).toEqual([
    ['c-1', 'unresolved-provider'],
    ['c-2', 'no-provider'],
    ['c-3', 'unsplit-name'],
  ]);
  expect(rows[0]?.hint).toContain('(PractitionerRole/…)');
  expect(await rejectedCsv(service, id)).toContain('client,c-3,,,Ada May Osei,p-1,');
  const nobody = { externalId: '', email: '', firstName: '', lastName: '', providers: '' };
  const [, , c3] = await rowsOf(service, id, 'outcome=rejected&cells=true');
  expect(c3?.cells).toEqual({ ...nobody, externalId: 'c-3', lastName: 'Ada May Osei', providers: 'p-1' });
});

test('rejected rows are shown with their cells, corrected, and sent again as JSON lines of both kinds', async () => {
  const { service } = shared;
  const jsonLines = (name: string, ...people: object[]) => ({
    name,
    type: 'application/x-ndjson',
    content: people.map((person) => JSON.stringify(person)).join('\n'),
  });
  const first = await planned(service, 'kind=clients&dryRun=true', [
    { name: 'providers.csv', type: 'text/csv', content: 'externalId;Surname;firstName;email\np-1;Osei;Ada;no mail' },
    { name: 'clients.csv', type: 'text/csv', content: 'externalId,firstName,lastName,providers\nc-1,,Haddad,p-1|p-1' },
  ]);
  expect(first.files).toEqual([
    { name: 'providers.csv', kind: 'providers', format: 'csv', rows: 1 },
    { name: 'clients.csv', kind: 'clients', format: 'csv', rows: 1 },
  ]);
  const rows = await rowsOf(service, first.id, 'outcome=rejected&cells=true');
  expect(rows.map(({ kind, cells }) => [kind, cells])).toEqual([
    ['provider', { externalId: 'p-1', email: 'no mail', firstName: 'Ada', lastName: 'Osei', providers: '' }],
    ['client', { externalId: 'c-1', email: '', firstName: '', lastName: 'Haddad', providers: 'p-1|p-1' }],
  ]);
  expect((await rowsOf(service, first.id, 'outcome=rejected'))[0]).not.toHaveProperty('cells');
  const second = await imported(service, 'kind=clients', [
    jsonLines('providers', { externalId: 'p-1', email: 'ada@clinic.example', firstName: 'Ada', lastName: 'Osei' }),
    jsonLines('clients', { externalId: 'c-1', firstName: 'Noor', lastName: 'Haddad', providers: ['p-1'] }),
  ]);
  expect(second.counts).toMatchObject({ total: 2, created: 2, rejected: 0 });
});
