import type { ReadEvent } from '../row/import-row.js';
import { isNewer } from './provider-references.js';
import { lostOf, providersOf, readFhir, rowsOf } from './read-fhir.spec-support.js';

const practitioner = {
  resourceType: 'Practitioner',
  id: 'p1',
  name: [{ family: 'Osei', given: ['Ada'] }],
  telecom: [{ system: 'email', value: 'ada.osei@clinic.example.org' }],
};
const gp = [{ reference: 'Practitioner/p1' }];
const patient = (id: string, more: object = {}) => ({
  resourceType: 'Patient',
  id,
  name: [{ family: 'Ash', given: ['Ann'] }],
  generalPractitioner: gp,
  ...more,
});
const bundle = (type: string, entry: unknown[], more: object = {}) => ({
  resourceType: 'Bundle',
  type,
  ...more,
  entry,
});
const deletion = (url: string, response?: object) => ({ request: { method: 'DELETE', url }, response });

const idsOf = (events: ReadEvent[]) =>
  rowsOf(events).map((row) => (row.is === 'person' ? row.person.externalId : `${row.is} ${row.externalId}`));

describe('a Bundle', () => {
  it.each(['collection', 'searchset', 'history', 'transaction', 'batch', 'batch-response'])(
    'of type %s is read',
    (type) => {
      const file = bundle(type, [
        { resource: practitioner, request: { method: 'PUT', url: 'Practitioner/p1' } },
        { resource: patient('c1'), response: { status: '200' } },
      ]);
      expect(idsOf(readFhir(file))).toEqual(['p1', 'c1']);
      expect(idsOf(readFhir([file]))).toEqual(['p1', 'c1']);
      expect(providersOf('c1', readFhir(file))).toEqual(['p1']);
    },
  );

  it('is read without requests, responses and outcomes', () => {
    const file = bundle('batch-response', [
      { request: { method: 'GET', url: 'Patient/c1' } },
      { response: { status: '404', outcome: { resourceType: 'OperationOutcome' } } },
      { resource: { resourceType: 'OperationOutcome' }, search: { mode: 'outcome' } },
      { resource: null },
    ]);
    expect(readFhir(file)).toEqual([]);
    expect(readFhir([file])).toEqual([]);
  });

  it('rejects entries whose resource is not one', () => {
    const file = bundle('collection', [{ resource: [patient('c1')] }, 'x', { resource: { id: 'c1' } }]);
    const rejected = { is: 'rejected', code: 'not-a-person' };
    expect(rowsOf(readFhir(file))).toMatchObject([rejected, rejected, rejected]);
    expect(rowsOf(readFhir([file]))).toMatchObject([rejected, rejected, rejected]);
  });

  it('in an entry or on a line is streamed, regardless of its size', () => {
    const many = Array.from({ length: 3_000 }, (_, at) => ({ resource: patient(`c${at}`) }));
    const nested = bundle('batch-response', [{ resource: bundle('searchset', many) }, { resource: practitioner }]);
    for (const file of [nested, [nested]]) {
      const events = readFhir(file, { limits: { row: 2_000, cell: 2_000 }, chunk: 5_000 });
      expect(idsOf(events)).toEqual([...many.map(({ resource }) => resource.id), 'p1']);
    }
  });

  it('nested more than eight times is rejected', () => {
    const nest = (levels: number): object =>
      bundle('collection', [{ resource: levels > 1 ? nest(levels - 1) : patient('c1') }]);
    expect(idsOf(readFhir([nest(8)]))).toEqual(['c1']);
    expect(rowsOf(readFhir([nest(9)]))).toMatchObject([{ is: 'rejected', code: 'nested-bundle' }]);
    const deep = `${'{"resourceType":"Bundle","entry":[{"resource":'.repeat(5_000)}7${'}]}'.repeat(5_000)}`;
    expect(rowsOf(readFhir(deep))).toMatchObject([{ is: 'rejected', code: 'nested-bundle' }]);
  });

  it('with links is a page', () => {
    const link = [
      { relation: 'self', url: 'https://ehr.example/fhir/Patient?_count=1' },
      { relation: 'next', url: 'https://ehr.example/fhir?page=2' },
      { relation: 'prev', url: 'https://ehr.example/fhir?page=0' },
    ];
    const page = {
      type: 'page',
      self: 'https://ehr.example/fhir/Patient?_count=1',
      next: 'https://ehr.example/fhir?page=2',
      previous: 'https://ehr.example/fhir?page=0',
    };
    const file = bundle('searchset', [], { link });
    expect(readFhir(file)).toEqual([page]);
    expect(readFhir([file, {}])).toContainEqual(page);
    expect(readFhir(bundle('batch-response', [{ resource: file }]))).toEqual([page]);
    expect(readFhir(bundle('collection', []))).toEqual([]);
  });
});

describe('a deletion', () => {
  it('in a history is newer than what it deletes', () => {
    const meta = { versionId: '2', lastUpdated: '2026-06-02T00:00:00Z' };
    const put = { resource: patient('c9', { meta }), request: { method: 'PUT', url: 'Patient/c9' } };
    const gone = deletion('Patient/c9', { lastModified: '2026-06-03T00:00:00Z' });
    for (const entry of [
      [gone, put],
      [put, gone],
    ]) {
      const rows = rowsOf(readFhir(bundle('history', entry)));
      const [newest] = rows.toSorted((a, b) => (a.version && b.version && isNewer(a.version, b.version) ? -1 : 1));
      expect(newest).toMatchObject({ is: 'deleted', kind: 'client', externalId: 'c9' });
    }
  });

  it.each([['W/"2"'], ['W/"3"']])('of the same second as what it deletes is newer by its etag %s', (etag) => {
    const lastModified = '2026-06-02T00:00:00Z';
    const meta = { versionId: '2', lastUpdated: lastModified };
    const put = { resource: patient('c9', { meta }), request: { method: 'PUT', url: 'Patient/c9' } };
    const [gone, row] = rowsOf(readFhir(bundle('history', [deletion('Patient/c9', { lastModified, etag }), put])));
    expect([gone?.is, gone?.version && row?.version && isNewer(gone.version, row.version)]).toEqual(['deleted', true]);
  });

  it('is read from the transactions of a Bulk Data file of deleted resources', () => {
    const file = [
      bundle('transaction', [deletion('Patient/c1'), deletion('Practitioner/p1')]),
      bundle('transaction', [deletion('Encounter/e1'), deletion('https://ehr.example/fhir/Patient/c2/_history/3')]),
    ];
    expect(rowsOf(readFhir(file))).toMatchObject([
      { is: 'deleted', kind: 'client', externalId: 'c1', line: 1 },
      { is: 'deleted', kind: 'provider', externalId: 'p1', line: 1 },
      { is: 'deleted', kind: 'client', externalId: 'c2', line: 2 },
    ]);
  });

  it('is skipped if an identifier is the external id, unless its URL names that', () => {
    const file = [bundle('transaction', [deletion('Patient/c1'), deletion('Patient?identifier=urn:mrn|7')])];
    expect(idsOf(readFhir(file, { idSystems: ['urn:mrn'] }))).toEqual(['deleted 7']);
    expect(idsOf(readFhir(file))).toEqual(['deleted c1']);
  });
});

describe('the version of a row', () => {
  const versionsOf = (file: object) => rowsOf(readFhir(file)).map(({ version }) => version);

  it('has time and number of the resource, or else of its response', () => {
    const meta = { versionId: '7', lastUpdated: '2026-06-01T02:00:00+02:00' };
    const response = { etag: 'W/"3"', lastModified: '2026-01-01' };
    const file = bundle('batch-response', [
      { resource: patient('c1', { meta }), response },
      { resource: patient('c2', { meta: { versionId: 'x' } }), response },
      { resource: patient('c3') },
    ]);
    expect(versionsOf(file)).toMatchObject([
      { at: new Date('2026-06-01T00:00:00Z'), no: 7 },
      { at: new Date('2026-01-01T00:00:00Z'), no: 3 },
      { place: expect.any(Number) },
    ]);
  });

  it('is newer further down, except in a history', () => {
    const resources = ['c1', 'c2', 'c3', 'c4'].map((id) => patient(id));
    const entries = resources.map((resource, at) => (at % 2 ? deletion(`Patient/${resource.id}`) : { resource }));
    const [collection, history] = [bundle('collection', entries), bundle('history', entries)];
    const placesOf = (file: object) => versionsOf(file).map((version) => version?.place ?? 0);
    for (const file of [resources, collection, [collection, ...resources]]) {
      expect(placesOf(file)).toEqual([...new Set(placesOf(file))].sort((a, b) => a - b));
    }
    for (const file of [history, [history, history]]) {
      expect(placesOf(file)).toEqual([...new Set(placesOf(file))].sort((a, b) => b - a));
    }
  });

  it('decides which general practitioner counts', () => {
    const older = patient('c1', { meta: { versionId: '1' }, generalPractitioner: [{ reference: 'Practitioner/p2' }] });
    const newer = patient('c1', { meta: { versionId: '2' } });
    const without = patient('c1', { meta: { versionId: '3' }, generalPractitioner: [] });
    const providers = [practitioner, { ...practitioner, id: 'p2' }];
    for (const order of [
      [older, newer],
      [newer, older],
    ]) {
      expect(providersOf('c1', readFhir([...providers, ...order]))).toEqual(['p1']);
      expect(providersOf('c1', readFhir([...providers, without, ...order]))).toBeUndefined();
      expect(providersOf('c1', readFhir([...providers, ...order, without]))).toBeUndefined();
    }
  });
});

describe('references in Bundles', () => {
  const on = (base: string, resource: { resourceType: string; id: string }) => ({
    fullUrl: `${base}/${resource.resourceType}/${resource.id}`,
    resource,
  });
  const [ehr, directory] = ['https://ehr.example/fhir', 'https://directory.example/fhir'];
  const refersTo = (reference: string) => patient('c1', { generalPractitioner: [{ reference }] });

  it('lead to a fullUrl', () => {
    const events = readFhir(
      bundle('collection', [
        { fullUrl: 'urn:uuid:1', resource: refersTo('urn:uuid:3') },
        { fullUrl: 'urn:uuid:2', resource: practitioner },
        {
          fullUrl: 'urn:uuid:3',
          resource: { resourceType: 'PractitionerRole', practitioner: { reference: 'urn:uuid:2' } },
        },
        { fullUrl: 'urn:uuid:4', resource: { resourceType: 'Observation' } },
      ]),
    );
    expect(rowsOf(events).map(({ line }) => line)).toEqual([5, 25]);
    expect(providersOf('c1', events)).toEqual(['p1']);
  });

  /** The client's providers, or why it has none. */
  const found = (practitionerBase: string | null, clientBase: string, reference: string, earlier?: string[]) => {
    const own = practitionerBase ? [on(practitionerBase, practitioner)] : [];
    const events = readFhir(bundle('collection', [...own, on(clientBase, refersTo(reference))]));
    const providers = providersOf('c1', events, { earlier });
    return providers?.length ? providers : lostOf('c1', events, { earlier });
  };

  it.each([
    ['absolute, to the same server', ehr, `${ehr}/Practitioner/p1`, ['p1']],
    ['absolute, to another server', ehr, `${directory}/Practitioner/p1`, { 'other-server': 1 }],
    ['absolute, to a server with this provider', directory, `${directory}/Practitioner/p1`, ['p1']],
    ['relative, to the same server', ehr, 'Practitioner/p1', ['p1']],
    ['relative, but the provider is on another server', directory, 'Practitioner/p1', { unknown: 1 }],
  ])('%s', (_, base, reference, expected) => {
    expect(found(base, ehr, reference)).toEqual(expected);
  });

  it.each([
    ['relative', 'Practitioner/p1', ['p1']],
    ['absolute, to the same server', `${ehr}/Practitioner/p1`, ['p1']],
    ['absolute, to another server', `${directory}/Practitioner/p1`, { 'other-server': 1 }],
  ])('to a provider from an earlier import: %s', (_, reference, expected) => {
    expect(found(null, ehr, reference, ['p1'])).toEqual(expected);
  });

  it('lead from lines to a Bundle, and from a Bundle to lines, only if they are relative', () => {
    const lines = readFhir([refersTo('Practitioner/p1')]);
    expect(providersOf('c1', [...lines, ...readFhir(bundle('collection', [on(ehr, practitioner)]))])).toEqual(['p1']);
    const entry = readFhir(bundle('collection', [on(ehr, refersTo('Practitioner/p1'))]));
    expect(providersOf('c1', [...entry, ...readFhir([practitioner])])).toEqual(['p1']);
    expect(lostOf('c1', readFhir([practitioner, refersTo(`${ehr}/Practitioner/p1`)]))).toEqual({ 'other-server': 1 });
  });
});
