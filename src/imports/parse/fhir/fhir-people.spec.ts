import { NOW, readAll } from '../read-all.spec-support.js';
import { resolveProviders } from '../resolve-providers.spec-support.js';

const NPI = 'http://hl7.org/fhir/sid/us-npi';

const lines = (resources: unknown[], idSystems?: string[]) =>
  readAll(resources.map((resource) => JSON.stringify(resource)).join('\n'), {
    format: 'fhir-ndjson',
    kind: 'fhir',
    idSystems,
  });
const bundle = (entry: unknown[]) =>
  readAll(JSON.stringify({ resourceType: 'Bundle', type: 'collection', entry }, null, 1), {
    format: 'fhir-json',
    kind: 'fhir',
  });

const patient = { resourceType: 'Patient', id: 'c1', name: [{ family: 'Osei', given: ['Ada', 'May'] }] };
const practitioner = {
  resourceType: 'Practitioner',
  id: 'p1',
  identifier: [{ system: NPI, value: '99' }],
  name: [{ family: 'Roe', given: ['Ann'] }],
  telecom: [{ system: 'email', value: 'ann@example.org' }],
};
const person = async (resource: object, idSystems?: string[]) => {
  const [row] = (await lines([resource], idSystems)).rows;
  return row?.ok ? row.person : [row?.code, row?.field];
};

describe('a FHIR R4 person', () => {
  it('is a provider or a client', async () => {
    expect(await person(practitioner)).toEqual({
      kind: 'provider',
      externalId: 'p1',
      email: 'ann@example.org',
      firstName: 'Ann',
      lastName: 'Roe',
    });
    expect(await person(patient)).toEqual({ kind: 'client', externalId: 'c1', firstName: 'Ada', lastName: 'Osei' });
  });

  it('has its official name, else the usual one, never the maiden one first', async () => {
    const [official, usual, plain] = ['Official', 'Usual', 'Plain'].map((family) => ({ family, given: ['Ada'] }));
    const maiden = { use: 'maiden', family: 'Maiden', given: ['Ada'] };
    const names = (...name: unknown[]) => person({ ...patient, name });
    expect(await names(maiden, plain, { ...usual, use: 'usual' }, { ...official, use: 'official' })).toMatchObject({
      lastName: 'Official',
    });
    expect(await names(maiden, plain, { ...usual, use: 'usual' })).toMatchObject({ lastName: 'Usual' });
    expect(await names(maiden, plain)).toMatchObject({ lastName: 'Plain' });
  });

  it.each([
    [{ text: 'Doktor Ada Osei', prefix: ['Doktor'] }, 'Ada', 'Osei'],
    [{ text: 'Dr Ada Osei, MD' }, 'Ada', 'Osei'],
    [{ text: 'Dr. Ada Osei, Ph.D., LCSW' }, 'Ada', 'Osei'],
    [{ text: 'ADA OSEI' }, 'ADA', 'OSEI'],
    [{ text: 'Osei, Ada' }, 'Ada', 'Osei'],
    [{ text: 'Osei, Ada', given: ['Ada'] }, 'Ada', 'Osei'],
    [{ family: 'van Osei', text: 'Ada van Osei' }, 'Ada', 'van Osei'],
    [{ family: 'Osei', given: ['', ' Ada '] }, 'Ada', 'Osei'],
  ])('whose name is %j has both its parts', async (name, firstName, lastName) => {
    expect(await person({ ...patient, name: [name] })).toMatchObject({ firstName, lastName });
  });

  it.each(['Ada May Osei', 'Ada', 'Osei, MD', 'van Osei, Ada', 'Osei, Ada May', 'Dr. Osei', 'Osei, Ada, Roe'])(
    'whose name is the text %s alone is rejected, since its parts can not be told apart',
    async (text) => {
      const [row] = (await lines([{ ...patient, name: [{ text }] }])).rows;
      expect(row).toMatchObject({ code: 'unsplit-name', raw: JSON.stringify(['client', 'c1', '', '', text, '']) });
    },
  );

  it('has the name, email and identifier that hold now, whichever stands first', async () => {
    const ended = { start: '2001', end: '2015-06' };
    const held = { start: '2015-06' };
    const name = [
      { use: 'official', family: 'Before', given: ['Ada'], period: ended },
      { use: 'usual', family: 'Now', given: ['Ada'], period: held },
      { use: 'official', family: 'Later', given: ['Ada'], period: { start: '2031' } },
    ];
    const telecom = [
      { system: 'email', value: 'before@example.org', rank: 1, period: ended },
      { system: 'email', value: 'later@example.org', rank: 1, period: { start: '2031' } },
      { system: 'email', value: 'now@example.org', rank: 9, period: held },
    ];
    const identifier = [
      { system: 'urn:mrn', value: 'before', use: 'official', period: ended },
      { system: 'urn:mrn', value: 'now', period: held },
    ];
    expect(await person({ ...patient, name, telecom, identifier }, ['urn:mrn'])).toMatchObject({
      externalId: 'now',
      email: 'now@example.org',
      lastName: 'Now',
    });
    expect(await person({ ...patient, telecom: telecom.slice(0, 1) })).not.toHaveProperty('email');
  });

  it('whose record was merged into another one is no second person, and is named', async () => {
    const link = [{ other: { reference: 'Patient/c2' }, type: 'replaced-by' }];
    const { rows } = await lines([
      { ...patient, link },
      { ...patient, id: 'c2', link: [{ ...link[0], type: 'replaces' }] },
    ]);
    expect(rows).toMatchObject([
      { ok: false, code: 'merged-record', kind: 'client', externalId: 'c1' },
      { ok: true, person: { externalId: 'c2' } },
    ]);
  });

  it('of strange shapes is read as far as it goes', async () => {
    const name = [7, null, { text: 'Ada Osei', prefix: [{ toString: 1 }], given: 'Ada', use: ['official'] }];
    expect(await person({ ...patient, name, telecom: { system: 'email' } })).toMatchObject({
      firstName: 'Ada',
      lastName: 'Osei',
    });
    expect(await person({ ...patient, id: 7, name })).toEqual(['missing-field', 'externalId']);
  });

  it('with one name only is rejected', async () => {
    expect(await person({ ...patient, name: [{ given: ['Ada'] }] })).toEqual(['missing-field', 'lastName']);
    expect(await person({ ...patient, name: 'Ada Osei' })).toEqual(['missing-field', 'firstName']);
  });

  it('is reached by the email of the best rank, a provider at work, a client at home, none that is old', async () => {
    const point = (value: string, more: object) => ({ system: 'email', value, ...more });
    const telecom = [
      { system: 'phone', value: '1', rank: 1 },
      point('old@example.org', { use: 'old', rank: 1 }),
      point('home@example.org', { use: 'home' }),
      point(' work@example.org ', { use: 'work' }),
    ];
    expect(await person({ ...practitioner, telecom })).toMatchObject({ email: 'work@example.org' });
    expect(await person({ ...patient, telecom })).toMatchObject({ email: 'home@example.org' });
    expect(await person({ ...patient, telecom: [...telecom, point('best@example.org', { rank: 2 })] })).toMatchObject({
      email: 'best@example.org',
    });
    expect(await person({ ...practitioner, telecom: [point('ann roe@example.org', {})] })).toEqual([
      'bad-email',
      'email',
    ]);
    expect(await person({ ...practitioner, telecom: [] })).toEqual(['missing-field', 'email']);
  });

  it('who is inactive or deceased is still a person', async () => {
    expect(await person({ ...patient, active: false, deceasedDateTime: '2020-01-01' })).toMatchObject({
      externalId: 'c1',
    });
  });

  it('has the identifier of the wanted system as its external id, or is rejected', async () => {
    const identifier = [
      { system: 'urn:mrn', value: 'old', use: 'old' },
      { system: 'urn:mrn', value: 'm-1' },
      { system: NPI, value: '7' },
    ];
    expect(await person({ ...patient, identifier }, ['urn:mrn'])).toMatchObject({ externalId: 'm-1' });
    expect(await person(practitioner, ['urn:mrn', NPI])).toMatchObject({ externalId: '99' });
    expect(await person(patient, ['urn:mrn'])).toEqual(['missing-field', 'externalId']);
  });

  it('shows what could be read of it when it is rejected', async () => {
    const { columns, rows } = await lines([{ ...practitioner, telecom: [] }]);
    expect(columns).toEqual(['kind', 'externalId', 'email', 'firstName', 'lastName', 'providers']);
    expect(rows).toMatchObject([
      { ok: false, kind: 'provider', externalId: 'p1', raw: '["provider","p1","","Ann","Roe",""]' },
    ]);
  });
});

describe('FHIR resources beside the people', () => {
  const providersOf = async (read: ReturnType<typeof lines>) =>
    resolveProviders((await read).facts, { now: NOW }).get('c1')?.providers;

  it('give a client its providers through every form of reference', async () => {
    const other = (id: string) => ({ ...practitioner, id, identifier: [{ system: NPI, value: id }] });
    const subject = { reference: 'Patient/c1' };
    const resources = [
      {
        resourceType: 'Encounter',
        subject,
        period: { start: '2023-12-01' },
        participant: [{ individual: { reference: 'Practitioner/p5' } }],
      },
      {
        resourceType: 'Encounter',
        subject,
        participant: [{ individual: { reference: `Practitioner?identifier=${NPI}|p4` }, period: { start: '2024-05' } }],
      },
      {
        resourceType: 'CareTeam',
        subject,
        participant: [{ member: { reference: 'Organization/o1' } }, { member: { reference: 'PractitionerRole/r3' } }],
      },
      { resourceType: 'PractitionerRole', id: 'r3', practitioner: { identifier: { system: NPI, value: 'p3' } } },
      {
        ...patient,
        generalPractitioner: [
          { identifier: { system: NPI, value: '99' } },
          { reference: 'https://ehr.example.org/Practitioner/p2' },
        ],
      },
      practitioner,
      ...['p2', 'p3', 'p4', 'p5'].map(other),
    ];
    expect(await providersOf(lines(resources))).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
    expect(await providersOf(lines(resources.reverse()))).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
  });

  it('that are void say nothing', async () => {
    const void_ = (resourceType: string, status: string) => ({
      resourceType,
      status,
      subject: { reference: 'Patient/c1' },
      participant: [{ individual: { reference: 'Practitioner/p1' }, member: { reference: 'Practitioner/p1' } }],
    });
    const resources = [
      void_('Encounter', 'cancelled'),
      void_('CareTeam', 'entered-in-error'),
      void_('CareTeam', 'proposed'),
    ];
    expect(await providersOf(lines([patient, practitioner, ...resources]))).toBeUndefined();
    expect(await providersOf(lines([patient, practitioner, void_('Encounter', 'planned')]))).toEqual(['p1']);
  });

  it('of a Bundle are found by fullUrl', async () => {
    const { rows, facts } = await bundle([
      { fullUrl: 'urn:uuid:1', resource: { ...patient, generalPractitioner: [{ reference: 'urn:uuid:3' }] } },
      { fullUrl: 'urn:uuid:2', resource: practitioner },
      {
        fullUrl: 'urn:uuid:3',
        resource: { resourceType: 'PractitionerRole', practitioner: { reference: 'urn:uuid:2' } },
      },
      { fullUrl: 'urn:uuid:4', resource: { resourceType: 'Observation' } },
    ]);
    expect(rows.map(({ line }) => line)).toEqual([5, 26]);
    expect(resolveProviders(facts, { now: NOW }).get('c1')).toMatchObject({ providers: ['p1'], unresolved: 0 });
  });

  it('a rejected provider is still meant by references, as long as its id is known', async () => {
    const facts = lines([
      { ...practitioner, telecom: [] },
      { ...patient, generalPractitioner: [{ reference: 'Practitioner/p1' }] },
    ]);
    expect(await providersOf(facts)).toEqual(['p1']);
  });

  it('that are no resources are rejected, other resources are not rows', async () => {
    const { rows } = await readAll(
      [
        '{"resourceType":"Organization","id":"o"}',
        '{',
        '{"id":"x"}',
        '',
        '{"resourceType":"Bundle"}',
        '{"resourceType":"__proto__"}',
      ].join('\n'),
      { format: 'ndjson', kind: 'fhir' },
    );
    expect(rows).toMatchObject([
      { line: 2, code: 'bad-json' },
      { line: 3, code: 'not-a-person' },
      { line: 5, code: 'not-a-person' },
      { line: 6, code: 'not-a-person' },
    ]);
  });

  it('are found by urn:uuid of their own ids, where a Bundle was cut into lines', async () => {
    const [patientId, providerId] = ['0B1C2D3E-0000-4000-8000-000000000001', '0b1c2d3e-0000-4000-8000-000000000002'];
    const { facts } = await lines([
      { ...patient, id: patientId },
      { ...practitioner, id: providerId },
      {
        resourceType: 'CareTeam',
        subject: { reference: `urn:uuid:${patientId.toLowerCase()}` },
        participant: [{ member: { reference: `urn:uuid:${providerId}` } }],
      },
    ]);
    expect(resolveProviders(facts, { now: NOW }).get(patientId)).toMatchObject({ providers: [providerId] });
  });

  it('of more than the limit are skipped when their type is none of a person, else the person is named', async () => {
    const text = { div: 'x'.repeat(3000) };
    const resources = [
      { resourceType: 'Group', text },
      { ...patient, text },
      { text, ...practitioner },
      { id: 'x', text },
    ];
    const options = { kind: 'fhir', limits: { row: 1000, cell: 1000 } } as const;
    const ndjson = resources.map((resource) => JSON.stringify(resource)).join('\n');
    const entry = resources.map((resource) => ({ fullUrl: 'urn:uuid:1', resource }));
    for (const chunk of [7, 100_000]) {
      const files = [
        await readAll(ndjson, { ...options, format: 'fhir-ndjson' }, chunk),
        await readAll(JSON.stringify({ resourceType: 'Bundle', entry }), { ...options, format: 'fhir-json' }, chunk),
      ];
      for (const { rows } of files) {
        expect(rows).toMatchObject([
          { code: 'row-too-large', kind: 'client', externalId: 'c1' },
          { code: 'row-too-large', kind: 'provider', externalId: 'p1' },
          { code: 'row-too-large' },
        ]);
        expect(rows[2]).not.toHaveProperty('externalId');
      }
    }
  });

  it('of one page of a search are not taken for the whole population', async () => {
    const page = (relation: string) =>
      JSON.stringify({ resourceType: 'Bundle', type: 'searchset', link: [{ relation, url: 'x' }], entry: [] }, null, 1);
    const read = (relation: string, whole: boolean) =>
      readAll(page(relation), { format: 'fhir-json', kind: 'fhir', whole }).then(
        () => 'read',
        (error: { code: string }) => error.code,
      );
    expect(await Promise.all([read('next', true), read('next', false), read('self', true)])).toEqual([
      'partial-bundle',
      'read',
      'read',
    ]);
  });

  it('of a Bundle that are no resources are rejected', async () => {
    const { rows } = await bundle([{ request: { method: 'DELETE' } }, { resource: [patient] }, { resource: patient }]);
    expect(rows).toMatchObject([{ code: 'not-a-person' }, { code: 'not-a-person' }, { ok: true }]);
  });
});
