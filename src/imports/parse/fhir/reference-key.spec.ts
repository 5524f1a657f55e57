import { keysOf, knownId, logicalKey, uriKey } from './reference-key.js';

const NPI = 'http://hl7.org/fhir/sid/us-npi';
const key = (uri: string, base?: string) => uriKey('provider', uri, base);

describe('the key of a reference', () => {
  it.each([
    ['Practitioner/p1', undefined, 'provider/Practitioner/p1'],
    ['Practitioner/p1/_history/3', undefined, 'provider/Practitioner/p1'],
    ['PractitionerRole/r1', undefined, 'provider/PractitionerRole/r1'],
    ['Practitioner/p1', 'ehr.example/fhir', 'provider/Practitioner/p1 ~ehr.example/fhir'],
    ['https://EHR.example/fhir/Practitioner/p1', 'ehr.example/fhir', 'provider/Practitioner/p1 ~ehr.example/fhir'],
    ['http://ehr.example/fhir/Practitioner/p1', 'ehr.example/fhir', 'provider/Practitioner/p1 ~ehr.example/fhir'],
    ['https://ehr.example/fhir/Practitioner/p1', undefined, 'provider/Practitioner/p1 ehr.example/fhir'],
    ['https://ehr.example/FHIR/R4/Practitioner/p1', 'x', 'provider/Practitioner/p1 ehr.example/FHIR/R4'],
    ['urn:uuid:ABC-1', undefined, 'provider:urn:uuid:abc-1'],
    [`Practitioner?identifier=${NPI}|99`, 'x', `provider|${NPI}|99`],
    [`Practitioner?identifier=${encodeURIComponent(`${NPI}|99`)}`, 'x', `provider|${NPI}|99`],
    [`https://ehr.example/fhir/Practitioner?active=true&identifier=${NPI}|99`, 'x', `provider|${NPI}|99`],
    ['Practitioner?identifier=99', undefined, 'provider||99'],
    ['Practitioner?identifier=|99', undefined, 'provider||99'],
    ['Practitioner?identifier=a|%zz', undefined, 'provider|a|%zz'],
  ])('%s from %s is %s', (uri, base, expected) => {
    expect(key(uri, base)).toBe(expected);
  });

  it.each([
    'Organization/o1',
    'Patient/c1',
    '#p1',
    'Practitioner/',
    'Practitioner?name=roe',
    'Practitioner?identifier=',
    'Practitioner?identifier=a|1&identifier=b|2',
    'Organization?identifier=a|1',
    'ftp://ehr.example/Practitioner/p1',
    '/'.repeat(100_000),
  ])('is undefined for %.50s', (uri) => {
    expect(key(uri)).toBeUndefined();
  });

  it('is one of the keys of its resource', () => {
    const identifier = [{ system: NPI, value: ' 99 ' }, { value: '7' }];
    const resource = { resourceType: 'Practitioner', id: 'p1', identifier };
    const keys = keysOf('provider', { resource, base: 'ehr.example', fullUrl: 'urn:uuid:ABC' });
    const uris = ['https://ehr.example/Practitioner/p1', 'urn:uuid:abc', `Practitioner?identifier=${NPI}|99`];
    for (const uri of [...uris, 'Practitioner?identifier=|7']) {
      expect(keys).toContain(key(uri));
    }
    expect(keys).toContain(logicalKey('provider', { system: NPI, value: '99' }));
  });
});

describe('knownId', () => {
  it('is the id of the resource, or the value of an identifier that gives external ids', () => {
    const uuid = '0b1c2d3e-0000-4000-8000-000000000001';
    expect(knownId('provider', 'provider/Practitioner/p1 ~ehr.example', [])).toBe('p1');
    expect(knownId('provider', `provider:urn:uuid:${uuid}`, [])).toBe(uuid);
    expect(knownId('provider', 'provider/PractitionerRole/p1', [])).toBeUndefined();
    expect(knownId('provider', 'provider|urn:mrn|7', [])).toBeUndefined();
    expect(knownId('client', 'client|urn:mrn|7|8', ['urn:x', 'urn:mrn'])).toBe('7|8');
    expect(knownId('client', 'client/Patient/7', ['urn:mrn'])).toBeUndefined();
  });
});
