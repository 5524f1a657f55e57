import { identifierKeys, knownPersonKeys, referenceKey } from './reference-key.js';

const NPI = 'http://hl7.org/fhir/sid/us-npi';

describe('a reference to a provider', () => {
  it.each([
    ['literal', { reference: 'Practitioner/p1' }],
    ['absolute', { reference: 'https://ehr.example.org/fhir/Practitioner/p1' }],
    ['of a version', { reference: 'Practitioner/p1/_history/3' }],
    ['with a display', { reference: ' Practitioner/p1 ', display: 'Dr. Roe' }],
  ])('that is %s means the resource', (_, reference) => {
    expect(referenceKey('provider', reference)).toBe('provider:Practitioner/p1');
  });

  it.each([
    ['logical', { identifier: { system: NPI, value: ' 99 ' } }],
    ['logical with a type', { type: 'Practitioner', identifier: { system: NPI, value: '99' } }],
    ['logical beside a contained one', { reference: '#p1', identifier: { system: NPI, value: '99' } }],
    ['conditional', { reference: `Practitioner?identifier=${NPI}|99` }],
    ['conditional and encoded', { reference: `Practitioner?identifier=${encodeURIComponent(`${NPI}|99`)}` }],
    [
      'conditional among others',
      { reference: `https://ehr.example.org/fhir/Practitioner?active=true&identifier=${NPI}|99` },
    ],
  ])('that is %s means its identifier', (_, reference) => {
    const key = referenceKey('provider', reference);
    expect(key).toBe(`provider:${NPI}|99`);
    expect(identifierKeys('provider', [{ system: NPI, value: '99' }])).toContain(key);
  });

  it('that is conditional without a system means any system, with an empty one none', () => {
    expect(identifierKeys('provider', [{ system: NPI, value: '99' }])).toContain(
      referenceKey('provider', { reference: 'Practitioner?identifier=99' }),
    );
    expect(referenceKey('provider', { reference: 'Practitioner?identifier=|99' })).toBe(
      referenceKey('provider', { identifier: { value: '99' } }),
    );
  });

  it('that is a UUID means it in any case', () => {
    expect(referenceKey('provider', { reference: 'urn:uuid:ABC-1' })).toBe('provider:urn:uuid:abc-1');
  });

  it('may name a role', () => {
    expect(referenceKey('provider', { reference: 'PractitionerRole/r1' })).toBe('provider:PractitionerRole/r1');
  });

  it.each([
    [undefined],
    ['Practitioner/p1'],
    [{ reference: 'Organization/o1' }],
    [{ reference: 'Patient/c1' }],
    [{ reference: '#p1' }],
    [{ reference: 'Practitioner/' }],
    [{ reference: 'Practitioner?name=roe' }],
    [{ reference: 'Practitioner?identifier=' }],
    [{ reference: 'Practitioner?identifier=a|1&identifier=b|2' }],
    [{ reference: 'Organization?identifier=a|1' }],
    [{ type: 'Organization', identifier: { system: NPI, value: '99' } }],
    [{ identifier: { system: NPI } }],
    [{ reference: 7 }],
  ])('is none: %j', (reference) => {
    expect(referenceKey('provider', reference)).toBeUndefined();
  });

  it('survives broken escapes', () => {
    expect(referenceKey('provider', { reference: 'Practitioner?identifier=a|%zz' })).toBe('provider:a|%zz');
    expect(referenceKey('provider', { reference: 'Practitioner?identifier=a|1\\|2\\,3' })).toBe('provider:a|1|2,3');
  });
});

describe('a person known from an earlier import', () => {
  it('is meant by the references that its external id answers', () => {
    expect(knownPersonKeys('provider', 'p1')).toEqual([referenceKey('provider', { reference: 'Practitioner/p1' })]);
    expect(knownPersonKeys('client', '7', ['urn:mrn'])).toEqual([
      referenceKey('client', { identifier: { system: 'urn:mrn', value: '7' } }),
    ]);
  });
});
