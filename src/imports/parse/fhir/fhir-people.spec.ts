import { providersOf, readFhir, rowsOf } from './read-fhir.spec-support.js';

const NPI = 'http://hl7.org/fhir/sid/us-npi';
const DIRECT = { url: 'http://hl7.org/fhir/us/core/StructureDefinition/us-core-direct', valueBoolean: true };
const patient = { resourceType: 'Patient', id: 'c1', name: [{ family: 'Osei', given: ['Ada', 'May'] }] };
const practitioner = {
  resourceType: 'Practitioner',
  id: 'p1',
  identifier: [{ system: NPI, value: '99' }],
  name: [{ family: 'Roe', given: ['Ann'] }],
  telecom: [{ system: 'email', value: 'ann@example.org' }],
};

/** The person that a resource becomes, or the code and field of its rejection. */
function person(resource: object, idSystems?: string[]) {
  const [row] = rowsOf(readFhir([resource], { idSystems }));
  if (row?.is === 'person') return row.person;
  return row?.is === 'rejected' ? [row.code, row.field] : row?.is;
}

describe('a Practitioner or Patient', () => {
  it('is a provider or a client', () => {
    const ann = { externalId: 'p1', email: 'ann@example.org', firstName: 'Ann', lastName: 'Roe' };
    expect(person(practitioner)).toEqual({ kind: 'provider', ...ann });
    expect(person(patient)).toEqual({ kind: 'client', externalId: 'c1', firstName: 'Ada', lastName: 'Osei' });
  });

  it('without an id is rejected with a hint about ids', () => {
    expect(person({ ...patient, id: 7 })).toEqual(['no-id', 'externalId']);
    expect(person(patient, ['urn:mrn'])).toEqual(['no-identifier', 'externalId']);
  });

  it('with the id of a wanted system has it as its external id', () => {
    const identifier = [
      { system: 'urn:mrn', value: 'old', use: 'old' },
      { system: 'urn:mrn', value: 'ended', use: 'official', period: { end: '2015-06' } },
      { system: 'urn:mrn', value: 'm-1', period: { start: '2015-06' } },
      { system: NPI, value: '7' },
    ];
    expect(person({ ...patient, identifier }, ['urn:mrn'])).toMatchObject({ externalId: 'm-1' });
    expect(person(practitioner, ['urn:mrn', NPI])).toMatchObject({ externalId: '99' });
  });

  it('that was merged into another chart stands for no one, even if it is inactive', () => {
    const link = [{ other: { reference: 'Patient/c2' }, type: 'replaced-by' }];
    const merged = { is: 'merged', kind: 'client', externalId: 'c1' };
    expect(rowsOf(readFhir([{ ...patient, link }]))).toMatchObject([merged]);
    expect(rowsOf(readFhir([{ ...patient, link, active: false }]))).toMatchObject([merged]);
    expect(person({ ...patient, link: [{ type: 'replaces' }] })).toMatchObject({ externalId: 'c1' });
    expect(person({ ...practitioner, link })).toMatchObject({ externalId: 'p1' });
  });

  it('that is rejected shows its texts', () => {
    const cells = { kind: 'provider', externalId: 'p1', firstName: 'Ann', lastName: 'Roe' };
    expect(rowsOf(readFhir([{ ...practitioner, telecom: [] }]))).toMatchObject([
      { is: 'rejected', code: 'missing-field', field: 'email', cells },
    ]);
  });

  it('with members of unexpected types is read as far as possible', () => {
    const name = [7, null, { family: 'Osei', prefix: [{ toString: 1 }], given: 'Ada', use: ['official'] }];
    const strange = { name, telecom: { system: 'email' }, meta: 7, link: 'x', generalPractitioner: [null, 7, 'x'] };
    expect(person({ ...patient, ...strange })).toMatchObject({ firstName: 'Ada', lastName: 'Osei' });
  });

  it.each([{ active: false }, { deceasedBoolean: true }, { deceasedDateTime: '2019-05-01' }])(
    'with %j is gone, even without a name',
    (state) => {
      const row = { is: 'gone', externalId: 'c1', kind: 'client' };
      expect(readFhir([{ ...patient, name: [], ...state }])).toEqual([expect.objectContaining(row)]);
      expect(person({ ...patient, active: true, deceasedBoolean: false })).toMatchObject({ externalId: 'c1' });
      expect(person({ ...practitioner, telecom: [], ...state })).toBe('gone');
      expect(person({ ...patient, id: 'x'.repeat(201), ...state })).toEqual(['too-long', 'externalId']);
    },
  );
});

describe('a SUBSETTED resource', () => {
  const meta = { tag: [{ code: 'SUBSETTED', system: 'http://terminology.hl7.org/CodeSystem/v3-ObservationValue' }] };

  it('is a partial person, with empty texts for what it does not show', () => {
    expect(rowsOf(readFhir([{ resourceType: 'Practitioner', id: 'p1', meta }]))).toMatchObject([
      { is: 'person', isPartial: true, person: { kind: 'provider', externalId: 'p1' } },
    ]);
    expect(person({ ...practitioner, meta })).toMatchObject({ email: 'ann@example.org', lastName: 'Roe' });
  });

  it('is rejected for what it shows', () => {
    expect(person({ ...patient, meta, telecom: [{ system: 'email', value: 'ada' }] })).toEqual(['bad-email', 'email']);
  });
});

describe('the name', () => {
  const names = (...name: unknown[]) => {
    const found = person({ ...patient, name });
    return typeof found === 'object' && 'firstName' in found ? `${found.firstName} ${found.lastName}` : found;
  };
  const [official, usual, plain] = ['Official', 'Usual', 'Plain'].map((family) => ({ family, given: ['Ada'] }));
  const maiden = { use: 'maiden', family: 'Maiden', given: ['Ada'] };

  it('is the first complete one by use: official, usual, then without use', () => {
    expect(names(maiden, plain, { ...usual, use: 'usual' }, { ...official, use: 'official' })).toBe('Ada Official');
    expect(names(maiden, plain, { ...usual, use: 'usual' })).toBe('Ada Usual');
    expect(names(maiden, plain)).toBe('Ada Plain');
    expect(names({ use: 'official', family: 'Roe' }, { use: 'usual', family: 'Roe', given: ['Jim'] })).toBe('Jim Roe');
  });

  it('is a former one only if there is no current one', () => {
    expect(names(maiden)).toBe('Ada Maiden');
    expect(names({ ...plain, period: { end: '2015' } })).toBe('Ada Plain');
    for (const period of [{ end: '2015' }, { start: '2031' }]) {
      expect(names({ use: 'official', ...official, period }, { use: 'nickname', ...plain })).toBe('Ada Plain');
    }
    expect(names({ use: 'nickname', given: ['Jimmy'] }, { use: 'old', family: 'Windsor', given: ['Jim'] })).toEqual([
      'missing-field',
      'lastName',
    ]);
  });

  it('is not split if it is only a text', () => {
    expect(names({ use: 'anonymous', text: 'anonymous' })).toEqual(['unsplit-name', 'firstName']);
    const [row] = rowsOf(readFhir([{ ...patient, name: [{ text: 'Ada Osei' }] }]));
    expect(row).toMatchObject({ code: 'unsplit-name', cells: { externalId: 'c1', lastName: 'Ada Osei' } });
  });

  it('may have its family name in a list, as in DSTU2', () => {
    expect(names({ family: ['Chell'], given: ['Pat', 'Jo'] })).toBe('Pat Chell');
    expect(names({ family: 'Osei', given: ['', ' Ada '] })).toBe('Ada Osei');
  });

  it('is rejected if it is incomplete', () => {
    expect(names({ given: ['Ada'] })).toEqual(['missing-field', 'lastName']);
    expect(names()).toEqual(['missing-field', 'firstName']);
  });
});

describe('the email', () => {
  const point = (value: string, more: object = {}) => ({ system: 'email', value, ...more });
  const emailOf = (resource: object, ...telecom: object[]) => {
    const found = person({ ...resource, telecom });
    return typeof found === 'object' && 'firstName' in found ? found.email : found;
  };

  it('is that of the best rank, then at work for providers and at home for clients', () => {
    const telecom = [
      { system: 'phone', value: '1', rank: 1 },
      point('old@example.org', { use: 'old', rank: 1 }),
      point('home@example.org', { use: 'home' }),
      point(' work@example.org ', { use: 'work' }),
    ];
    expect(emailOf(practitioner, ...telecom)).toBe('work@example.org');
    expect(emailOf(patient, ...telecom)).toBe('home@example.org');
    expect(emailOf(patient, ...telecom, point('best@example.org', { rank: 2 }))).toBe('best@example.org');
  });

  it('is never one that has ended, and a future one last', () => {
    const ended = point('ended@example.org', { rank: 1, period: { end: '2015' } });
    const later = point('later@example.org', { rank: 1, period: { start: '2031' } });
    expect(emailOf(patient, ended, later, point('now@example.org', { rank: 9 }))).toBe('now@example.org');
    expect(emailOf(patient, ended, later)).toBe('later@example.org');
    expect(emailOf(patient, ended)).toBeUndefined();
  });

  it('is the first usable one: neither a placeholder nor a text that is not an address', () => {
    expect(emailOf(patient, point('none'), point('em@example.org', { use: 'work' }))).toBe('em@example.org');
    expect(emailOf(practitioner, point('ann roe@'), point('ann@example.org'))).toBe('ann@example.org');
    expect(emailOf(patient, point('mailto:em2@example.org'))).toBe('em2@example.org');
    expect(emailOf(patient, point('declined'))).toBeUndefined();
  });

  it('is a Direct address only for a provider without another one', () => {
    const direct = point('pd@direct.example.org', { rank: 1, extension: [DIRECT] });
    expect(emailOf(practitioner, direct, point('none'))).toBe('pd@direct.example.org');
    expect(emailOf(practitioner, direct, point('pd@example.org', { rank: 9 }))).toBe('pd@example.org');
    expect(emailOf(patient, direct)).toBeUndefined();
  });

  it('is rejected if there is only a text that is not an address', () => {
    expect(emailOf(practitioner, point('none'), point('ann roe@'))).toEqual(['bad-email', 'email']);
  });
});

it('a line is rejected only if it is not a resource', () => {
  const text = ['{"resourceType":"Organization","id":"o"}', '{', '{"id":"x"}', '{"resourceType":"Bundle"}'];
  expect(rowsOf(readFhir([...text, '{"resourceType":"__proto__"}'].join('\n')))).toMatchObject([
    { line: 2, code: 'bad-json' },
    { line: 3, code: 'not-a-person' },
    { line: 5, code: 'not-a-person' },
  ]);
});

describe('a record over the limit', () => {
  const limits = { row: 10_000, cell: 1_000 };
  const filesOf = (...resources: object[]) => {
    return [resources, { resourceType: 'Bundle', entry: resources.map((resource) => ({ resource })) }];
  };

  it('is read if only its strings are long', () => {
    const photo = [{ contentType: 'image/jpeg', data: 'x'.repeat(500_000) }];
    for (const file of filesOf({ photo, ...patient }, { ...practitioner, photo })) {
      const rows = rowsOf(readFhir(file, { limits, chunk: 1_000 }));
      expect(rows).toMatchObject([{ person: { externalId: 'c1' } }, { person: { externalId: 'p1' } }]);
    }
  });

  it('is rejected if it may be a person', () => {
    const text = { div: Array(12_000).fill('x') };
    const group = { resourceType: 'Group', text };
    for (const file of filesOf(group, { ...patient, text }, { text, ...practitioner }, { id: 'x', text })) {
      const rows = rowsOf(readFhir(file, { limits, chunk: 777 }));
      expect(rows).toMatchObject([
        { code: 'row-too-large', kind: 'client', externalId: 'c1' },
        { code: 'row-too-large', kind: 'provider', externalId: 'p1' },
        { code: 'row-too-large', cells: {} },
      ]);
    }
  });
});

describe('care that gives a client its providers', () => {
  const subject = { reference: 'Patient/c1' };
  const member = { reference: 'Practitioner/p1' };
  const providersBy = (...resources: object[]) => providersOf('c1', readFhir([patient, practitioner, ...resources]));
  const team = (more: object) => ({ resourceType: 'CareTeam', subject, participant: [{ member }], ...more });
  const encounter = (more: object) => ({
    resourceType: 'Encounter',
    subject,
    participant: [{ individual: member }],
    ...more,
  });

  it.each([
    [{}, true],
    [{ status: 'active', period: { end: '2026-11-20' } }, true],
    [{ status: 'proposed' }, false],
    [{ status: 'entered-in-error' }, false],
    [{ period: { end: '2026-11-19' } }, false],
    [{ participant: [{ member, period: { end: '2026-10' } }] }, false],
  ])('is a CareTeam with %j: %s', (more, isCare) => {
    expect(providersBy(team(more))).toEqual(isCare ? ['p1'] : undefined);
  });

  it.each([
    [{}, true],
    [{ status: 'planned', period: { start: '2026-12-24' } }, true],
    [{ status: 'finished', period: { start: '2025-11-21' } }, true],
    [{ status: 'finished', period: { start: '2025-11-19' } }, false],
    [{ status: 'finished', period: { start: '2024', end: '2026-01-01' } }, true],
    [{ status: 'cancelled' }, false],
    [{ status: 'entered-in-error' }, false],
    [{ status: 'proposed' }, false],
  ])('is an Encounter with %j: %s', (more, isCare) => {
    expect(providersBy(encounter(more))).toEqual(isCare ? ['p1'] : undefined);
  });

  it('is an older Encounter if encounterSince includes it', () => {
    const file = [patient, practitioner, encounter({ period: { start: '2019-03-01' } })];
    const since = (day: string) => readFhir(file, { encounterSince: new Date(day) });
    expect(providersOf('c1', since('2019-01-01'))).toEqual(['p1']);
    expect(providersOf('c1', since('2020-01-01'))).toBeUndefined();
  });

  it.each([
    [{ active: true, period: { end: '2027' } }, ['p1']],
    [{ active: false }, []],
    [{ period: { end: '2026-11-19' } }, []],
  ])('includes a PractitionerRole with %j only while it is active', (more, providers) => {
    const role = { resourceType: 'PractitionerRole', id: 'r1', practitioner: member, ...more };
    const gp = { ...patient, generalPractitioner: [{ reference: 'PractitionerRole/r1' }] };
    expect(providersOf('c1', readFhir([role, practitioner, gp]))).toEqual(providers);
  });

  it('is ordered: general practitioner, care team, encounters newest first', () => {
    const other = (id: string) => ({ ...practitioner, id, identifier: [{ system: NPI, value: id }] });
    const resources = [
      encounter({ period: { start: '2026-01-01' }, participant: [{ individual: { reference: 'Practitioner/p5' } }] }),
      encounter({
        participant: [{ individual: { reference: `Practitioner?identifier=${NPI}|p4` }, period: { start: '2026-05' } }],
      }),
      team({
        participant: [{ member: { reference: 'RelatedPerson/x' } }, { member: { reference: 'PractitionerRole/r3' } }],
      }),
      { resourceType: 'PractitionerRole', id: 'r3', practitioner: { identifier: { system: NPI, value: 'p3' } } },
      {
        ...patient,
        generalPractitioner: [{ identifier: { system: NPI, value: '99' } }, { reference: 'Practitioner/p2' }],
      },
      practitioner,
      ...['p2', 'p3', 'p4', 'p5'].map(other),
    ];
    expect(providersOf('c1', readFhir(resources))).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
    expect(providersOf('c1', readFhir(resources.reverse()))).toEqual(['p1', 'p2', 'p3', 'p4', 'p5']);
  });
});
