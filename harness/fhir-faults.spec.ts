import { fhirFaults } from './fhir-faults.js';

const note = {
  resourceType: 'DocumentReference',
  id: 'a-1',
  meta: { versionId: '1', lastUpdated: '2026-03-01T08:00:00.000Z' },
  status: 'current',
  docStatus: 'final',
  subject: { type: 'Patient', identifier: { system: 'urn:notebridge:client', value: 'c-1' } },
  date: '2026-03-01T08:00:00Z',
  content: [{ attachment: { contentType: 'text/markdown; charset=utf-8', data: 'YQ==' } }],
};
const entry = { fullUrl: 'http://ehr.example/fhir/DocumentReference/a-1', resource: note, search: { mode: 'match' } };
const bundle = {
  resourceType: 'Bundle',
  type: 'searchset',
  link: [{ relation: 'self', url: 'http://ehr.example/fhir/DocumentReference' }],
  entry: [entry],
};

it.each([
  ['DocumentReference', note],
  ['Bundle', bundle],
])('a valid %s has no faults', (_, resource) => {
  expect(fhirFaults(resource)).toEqual([]);
});

it.each<[fault: string, resource: object]>([
  ['no resource', {}],
  ['an unknown resource', { resourceType: 'Note' }],
  ['no content', { ...note, content: undefined }],
  ['no status', { ...note, status: undefined }],
  ['an unknown status', { ...note, status: 'ready' }],
  ['an unknown docStatus', { ...note, docStatus: 'ready' }],
  ['an unknown member', { ...note, text2: 'x' }],
  ['an unknown nested member', { ...note, context: { session: 'x' } }],
  ['a list for one value', { ...note, status: ['current'] }],
  ['one value for a list', { ...note, author: { display: 'Ada' } }],
  ['an empty list', { ...note, author: [] }],
  ['an empty text', { ...note, description: '' }],
  ['a null', { ...note, description: null }],
  ['a number for a text', { ...note, description: 5 }],
  ['an id with an underscore', { ...note, id: 'a_1' }],
  ['an id of 65 characters', { ...note, id: 'a'.repeat(65) }],
  ['a date for an instant', { ...note, date: '2026-03-01' }],
  ['an instant in a month that does not exist', { ...note, date: '2026-13-01T08:00:00Z' }],
  ['content that is not base64', { ...note, content: [{ attachment: { data: '%%%%' } }] }],
  ['a URI with a space', { ...note, identifier: [{ system: 'urn: a', value: '1' }] }],
  ['a subject of a wrong type', { ...note, subject: { type: 'Appointment', display: 'x' } }],
  ['a Bundle without a type', { ...bundle, type: undefined }],
  ['a Bundle with an invalid resource', { ...bundle, entry: [{ ...entry, resource: { ...note, status: undefined } }] }],
  ['a Bundle with an unknown search mode', { ...bundle, entry: [{ ...entry, search: { mode: 'found' } }] }],
  ['a collection with search modes', { ...bundle, type: 'collection' }],
  ['a Bundle with the same entry twice', { ...bundle, entry: [entry, entry] }],
  ['a Bundle with the URL of another resource', { ...bundle, entry: [{ ...entry, fullUrl: 'http://x/a-2' }] }],
  ['an OperationOutcome without issues', { resourceType: 'OperationOutcome' }],
  [
    'an OperationOutcome with an unknown code',
    { resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'bad' }] },
  ],
  [
    'a CapabilityStatement without formats',
    { resourceType: 'CapabilityStatement', status: 'active', date: '2026', kind: 'instance', fhirVersion: '4.0.1' },
  ],
])('%s is a fault', (_, resource) => {
  expect(fhirFaults(resource)).not.toEqual([]);
});
