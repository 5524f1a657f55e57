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
const capabilities = {
  ...{ resourceType: 'CapabilityStatement', status: 'active', date: '2026', kind: 'instance', fhirVersion: '4.0.1' },
  ...{ format: ['json'], implementation: { description: 'Notes' }, rest: [{ mode: 'server' }] },
};
const withResource = (...resource: object[]) => ({ ...capabilities, rest: [{ mode: 'server', resource }] });
const name = { name: 'date', type: 'date' };
/** A note with another attachment. */
const withAttachment = (more: object) => ({
  ...note,
  content: [{ attachment: { ...note.content[0]?.attachment, ...more } }],
});

it.each([
  ['DocumentReference', note],
  ['Bundle', bundle],
  ['Bundle with a total', { ...bundle, total: 0 }],
  ['collection', { resourceType: 'Bundle', type: 'collection', entry: [{ fullUrl: 'urn:uuid:a-1', resource: note }] }],
  ['CapabilityStatement', withResource({ type: 'DocumentReference', readHistory: false, searchParam: [name] })],
  ['DocumentReference with a size', withAttachment({ size: 0 })],
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
  ['a blank text', { ...note, description: ' \n' }],
  ['a negative size', withAttachment({ size: -1 })],
  ['a size that is not whole', withAttachment({ size: 1.5 })],
  ['a size as text', withAttachment({ size: '1' })],
  ['a size that is true', withAttachment({ size: true })],
  ['a total as text', { ...bundle, total: '1' }],
  ['a size of too many digits', withAttachment({ size: 1e21 })],
  ['a boolean as text', withResource({ type: 'DocumentReference', readHistory: 'false' })],
  ['a boolean as number', withResource({ type: 'DocumentReference', readHistory: 0 })],
  ['a true for a text', { ...note, description: true }],
  [
    'a contact whose rank is zero',
    { ...capabilities, contact: [{ telecom: [{ system: 'url', value: 'x', rank: 0 }] }] },
  ],
  ['att-1: data without a type', withAttachment({ contentType: undefined })],
  ['bdl-1: a total of a collection', { resourceType: 'Bundle', type: 'collection', total: 1 }],
  ['bdl-5: an entry without a resource', { ...bundle, entry: [{ fullUrl: 'http://x/DocumentReference/a-1' }] }],
  [
    'bdl-8: the URL of a version',
    { ...bundle, entry: [{ ...entry, fullUrl: 'http://x/DocumentReference/_history/a-1' }] },
  ],
  [
    'a fullUrl of an id that only ends like the resource’s',
    { ...bundle, entry: [{ ...entry, fullUrl: 'http://x/DocumentReference/x-a-1' }] },
  ],
  ['a fullUrl of another type', { ...bundle, entry: [{ ...entry, fullUrl: 'http://x/Patient/a-1' }] }],
  [
    'cpb-2: no description, software or implementation',
    { ...capabilities, kind: 'requirements', implementation: undefined },
  ],
  [
    'cpb-14: an instance without an implementation',
    { ...capabilities, implementation: undefined, software: { name: 'x' } },
  ],
  ['cpb-9: a resource twice', withResource({ type: 'DocumentReference' }, { type: 'DocumentReference' })],
  ['cpb-12: a parameter twice', withResource({ type: 'DocumentReference', searchParam: [name, name] })],
  [
    'a CapabilityStatement without formats',
    { resourceType: 'CapabilityStatement', status: 'active', date: '2026', kind: 'instance', fhirVersion: '4.0.1' },
  ],
])('%s is a fault', (fault, resource) => {
  const [rule = ''] = /^[a-z]+-\d+/.exec(fault) ?? [];
  expect(fhirFaults(resource)).toContainEqual(expect.stringContaining(rule));
});

it('names the broken rule, and the place of the wrong entry', () => {
  const wrong = { ...entry, fullUrl: 'http://x/DocumentReference/a-2' };
  expect(fhirFaults({ ...bundle, type: 'collection', entry: [{ ...entry, search: undefined }, wrong] })).toEqual([
    'bdl-2: Bundle.entry.search is only for a searchset',
    'Bundle.entry[1].fullUrl does not lead to its resource',
  ]);
});
