import { canary } from '../../harness/canaries.js';
import { until } from '../../harness/until.js';
import type { PrivateEhr } from './ehr.js';
import { person } from './people-drive.js';

const cells = (name: string) => {
  const { email, firstName, lastName } = person(name);
  return `${email},${firstName},${lastName}`;
};

const HEADER = `externalId,email,firstName,lastName,providers,${canary('Column')}`;

const CSV = [
  HEADER,
  `c-20,${cells('Csv')},p-1,${canary('Cell')}`,
  `c-21,${canary('NotAMail')},${canary('FirstBad')},${canary('LastBad')},p-1,x`,
  `c-22,${cells('NoProvider')},p-1|${canary('Provider')},x`,
  `c-20,${cells('Twice')},p-1,x`,
  `,${cells('NoId')},p-1,x`,
  `"c-23,${canary('OpenQuote')}`,
].join('\n');

/** A file with two possible id columns, so its import needs a choice. */
const UNCLEAR = [
  `MRN,Chart ID,email,firstName,lastName,Ward`,
  `7,c-24,${cells('Waits')},${canary('WaitingCell')}`,
  `"8,c-25,${canary('WaitingQuote')}`,
].join('\n');

const LINES = [
  { externalId: 'c-30', ...person('Line'), providers: ['p-1'] },
  { externalId: 'c-31', ...person('LineBad'), email: canary('LineMail'), providers: ['p-1'] },
  { externalId: 'c-32', ...person('LineMore'), providers: ['p-1'], diagnosis: canary('Diagnosis') },
]
  .map((line) => JSON.stringify(line))
  .concat(`{"externalId": "c-33", "firstName": "${canary('LineBroken')}`)
  .join('\n');

const patient = (id: string, name: string, more: object = {}) => ({
  resourceType: 'Patient',
  id,
  identifier: [{ system: `urn:${canary('System').toLowerCase()}`, value: canary('Identifier') }],
  name: [{ family: canary(`Family${name}`), given: [canary(`Given${name}`)], text: canary('NameText') }],
  telecom: [
    { system: 'email', value: `${canary(`Fhir${name}`)}@clinic.example` },
    { system: 'phone', value: canary('Telephone') },
  ],
  address: [{ line: [canary('Street')] }],
  generalPractitioner: [{ reference: 'Practitioner/p-1', display: canary('Display') }],
  extension: [{ url: 'http://x.example', valueString: canary('Extension') }],
  ...more,
});

const RESOURCES = [
  patient('c-40', 'A'),
  patient('c-41', 'B', { name: [] }),
  patient('c-42', 'C', { telecom: [{ system: 'email', value: canary('FhirMail') }] }),
  patient('c-43', 'D', { generalPractitioner: [{ identifier: { system: 'urn:npi', value: canary('Npi') } }] }),
  {
    resourceType: 'Practitioner',
    id: 'p-4',
    name: [{ family: canary('Doctor'), given: [canary('DoctorGiven')] }],
    telecom: [{ system: 'email', value: person('Doctor').email }],
  },
  {
    resourceType: 'Encounter',
    id: 'e-1',
    subject: { reference: 'Patient/c-40' },
    reasonCode: [{ text: canary('Reason') }],
    period: { start: '2026-10-01' },
  },
  { resourceType: 'Observation', id: canary('ObservationId'), valueString: canary('Observation') },
];

const BUNDLE = JSON.stringify({
  resourceType: 'Bundle',
  type: 'collection',
  entry: RESOURCES.map((resource) => ({ resource })),
});
const FHIR_LINES = RESOURCES.map((resource) => JSON.stringify(resource)).join('\n');

/** Imports in every format: applied, partly rejected, rejected, interrupted and cancelled; and their reports. */
export async function driveImports(ehr: PrivateEhr): Promise<void> {
  const raw: [kind: string, type: string, body: string][] = [
    ['clients', 'text/csv', CSV],
    ['clients', 'application/x-ndjson', LINES],
    ['fhir', 'application/fhir+ndjson', FHIR_LINES],
    ['fhir', 'application/fhir+json', BUNDLE],
    ['fhir', 'application/fhir+json', BUNDLE.slice(0, -40)],
    ['clients', 'text/csv', `${canary('NoHeader')},${canary('NorHere')}\nAnn,Lee`],
    ['providers', 'text/csv', canary('NoTable')],
    ['clients', 'application/pdf', canary('NoType')],
  ];
  for (const [kind, type, body] of raw) await importOf(ehr, `kind=${kind}`, { body, type });
  await importOf(ehr, `kind=clients&mode=snapshot&dryRun=true&defaultProvider=p-1`, {
    body: CSV,
    type: 'text/csv',
  });
  await ehr.ask('POST', `/v1/imports?kind=${canary('Kind')}`, { body: CSV, type: 'text/csv' });
  const form = new FormData();
  form.append(
    'providers',
    new Blob([`externalId,email,firstName,lastName\np-5,${cells('Form')}`], { type: 'text/csv' }),
    `${canary('FileName')}.csv`,
  );
  form.append('clients', new Blob([CSV], { type: 'text/csv' }), `${canary('FileName')}.csv`);
  await importOf(ehr, 'kind=clients', { body: form });
  const odd = new FormData();
  odd.append(canary('Part'), new Blob([CSV], { type: 'text/csv' }), `${canary('FileName')}.csv`);
  await importOf(ehr, 'kind=clients', { body: odd });
  const waiting = () => importOf(ehr, 'kind=clients&defaultProvider=p-1', { body: UNCLEAR, type: 'text/csv' });
  const mapped = `/v1/imports/${await waiting()}/mapping`;
  await ehr.ask('POST', mapped, { body: { columns: { externalId: canary('Choice') } } });
  await ehr.ask('POST', mapped, { body: { columns: { externalId: 'Chart ID' } } });
  await waiting(); // its records remain stored until the end
  const wrong = new FormData();
  wrong.append('clients', canary('Field'));
  await importOf(ehr, 'kind=clients', { body: wrong });
}

/** @returns the id of the import; undefined if it is rejected */
async function importOf(
  ehr: PrivateEhr,
  query: string,
  sent: { body: unknown; type?: string },
): Promise<string | undefined> {
  const { status, text } = await ehr.ask('POST', `/v1/imports?${query}`, sent);
  if (status !== 202) return undefined;
  const { id } = JSON.parse(text) as { id: string };
  const path = `/v1/imports/${id}`;
  await until('the import is planned or has ended', async () => {
    const { state } = await ehr.get<{ state: string }>('GET', path);
    return !['staging', 'running'].includes(state);
  });
  for (const part of ['', '/rows', '/rows?outcome=rejected', '/rejected.csv']) await ehr.ask('GET', path + part);
  if (query.includes('dryRun')) await ehr.get('POST', `${path}/cancel`);
  await ehr.ask('POST', `${path}/retry`, { body: {} });
  return id;
}
