import { lostHint } from './lost-hint.js';
import { lostOf, providersOf, readFhir } from './read-fhir.spec-support.js';

const NPI = 'http://hl7.org/fhir/sid/us-npi';
const email = (value: string) => ({ telecom: [{ system: 'email', value }] });
const person = (resourceType: string, id: string, more: object = {}) => ({
  resourceType,
  id,
  name: [{ family: 'Osei', given: ['Ada'] }],
  ...more,
});
const p1 = person('Practitioner', 'p1', {
  ...email('p1@clinic.example.org'),
  identifier: [{ system: NPI, value: '99' }],
});
const noEmail = person('Practitioner', 'noemail');
const client = (generalPractitioner: unknown[], more: object = {}) =>
  person('Patient', 'c1', { generalPractitioner, ...more });

/** The client's providers, or the reasons why it has none. */
function found(resources: unknown[]) {
  const events = readFhir(resources);
  const providers = providersOf('c1', events);
  return providers?.length ? providers : lostOf('c1', events);
}

describe('a general practitioner', () => {
  it.each([
    ['by reference', [{ reference: 'Practitioner/p1' }], ['p1']],
    ['by identifier', [{ identifier: { system: NPI, value: '99' } }], ['p1']],
    ['by reference and identifier', [{ reference: '#x', identifier: { system: NPI, value: '99' } }], ['p1']],
    [
      'by an unreadable reference and an identifier',
      [{ reference: 'x', identifier: { system: NPI, value: '99' } }],
      ['p1'],
    ],
    ['unknown', [{ reference: 'Practitioner/absent' }], { unknown: 1 }],
    ['by an unreadable reference', [{ reference: 'Dr. Osei' }], { unknown: 1 }],
    ['by display name only', [{ display: 'Ada Osei' }], { 'display-only': 1 }],
    ['an organization', [{ reference: 'Organization/1', display: 'Family Practice' }], { organization: 1 }],
    ['an organization by identifier', [{ type: 'Organization', identifier: { value: 'Y1' } }], { organization: 1 }],
    [
      'an organization, and a practitioner',
      [{ reference: 'Organization/1' }, { reference: 'Practitioner/p1' }],
      ['p1'],
    ],
    ['whose row is rejected', [{ reference: 'Practitioner/noemail' }], { rejected: 1 }],
    ['missing', [{}, null, { reference: 'RelatedPerson/1' }], {}],
  ])('%s', (_, references, expected) => {
    expect(found([p1, noEmail, client(references)])).toEqual(expected);
  });

  it('that is lost leaves the client the others, also in a care team or encounter', () => {
    const references = ['noemail', 'absent', 'p1'].map((id) => ({ reference: `Practitioner/${id}` }));
    const care = { subject: { reference: 'Patient/c1' } };
    const team = { ...care, resourceType: 'CareTeam', participant: references.map((member) => ({ member })) };
    const participant = references.map((individual) => ({ individual }));
    const encounter = { ...care, resourceType: 'Encounter', participant };
    for (const one of [client(references), team, encounter])
      expect(found([p1, noEmail, client([]), one])).toEqual(['p1']);
    expect(lostOf('c1', readFhir([p1, noEmail, client(references)]))).toEqual({ rejected: 1, unknown: 1 });
  });
});

describe('a contained practitioner', () => {
  const identifier = [
    { system: 'urn:license', value: '1' },
    { system: NPI, value: '99' },
  ];
  const practitioner = { resourceType: 'Practitioner', id: 'gp', identifier };

  it.each([
    ['is found by any of its identifiers', [practitioner], ['p1']],
    ['is lost without an identifier', [{ ...practitioner, identifier: [] }], { contained: 1 }],
    ['is lost if it is missing', [], { contained: 1 }],
    ['may be an organization', [{ resourceType: 'Organization', id: 'gp' }], { organization: 1 }],
    [
      'may be that of a contained role',
      [
        { resourceType: 'PractitionerRole', id: 'gp', practitioner: { reference: '#one' } },
        { ...practitioner, id: 'one' },
      ],
      ['p1'],
    ],
    [
      'may be referred to by a contained role',
      [{ resourceType: 'PractitionerRole', id: 'gp', practitioner: { reference: 'Practitioner/p1' } }],
      ['p1'],
    ],
    [
      'is lost in a contained role without a practitioner',
      [{ resourceType: 'PractitionerRole', id: 'gp' }],
      { 'role-without-practitioner': 1 },
    ],
    [
      'is lost in a contained role that refers to itself',
      [{ resourceType: 'PractitionerRole', id: 'gp', practitioner: { reference: '#gp' } }],
      { contained: 1 },
    ],
  ])('%s', (_, contained, expected) => {
    expect(found([p1, client([{ reference: '#gp' }], { contained })])).toEqual(expected);
  });
});

describe('a PractitionerRole', () => {
  const hpii = { system: 'http://ns.electronichealth.net.au/id/hi/hpii/1.0', value: '8003619900015717' };
  const bob = person('Practitioner', 'bob', { ...email('bob@clinic.example.org'), identifier: [hpii] });
  const sandy = person('Practitioner', 'sandy', { ...email('sandy@clinic.example.org'), identifier: [hpii] });
  const role = (id: string, practitioner?: object) => ({ resourceType: 'PractitionerRole', id, practitioner });
  const roles = [role('role1', { reference: 'Practitioner/bob' }), role('role2'), role('role3', { identifier: hpii })];

  it.each([
    ['leads to its practitioner', { reference: 'PractitionerRole/role1' }, ['bob']],
    [
      'without a practitioner leads nowhere',
      { reference: 'PractitionerRole/role2' },
      { 'role-without-practitioner': 1 },
    ],
    ['whose practitioner is ambiguous leads nowhere', { reference: 'PractitionerRole/role3' }, { ambiguous: 1 }],
    ['that is missing leads nowhere', { reference: 'PractitionerRole/role4' }, { unknown: 1 }],
  ])('%s', (_, reference, expected) => {
    expect(found([bob, sandy, ...roles, client([reference])])).toEqual(expected);
    expect(found([client([reference]), ...roles, sandy, bob])).toEqual(expected);
  });
});

describe('lostHint', () => {
  it('explains the reason that is easiest to correct', () => {
    expect(lostHint(new Map([['organization', 5] as const, ['display-only', 1] as const]))).toBe(
      'The provider is given only by display name. Add a reference to the Practitioner, or give the import a default provider.',
    );
  });
});
