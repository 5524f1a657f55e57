import { ProviderReferences } from '../parse/fhir/provider-references.js';
import { readFhir } from '../parse/fhir/read-fhir.spec-support.js';
import { MergedCharts } from './merged-charts.js';

const MRN = 'urn:mrn';
const into = (reference: unknown, type = 'replaced-by') => ({ type, other: { reference } });
const patient = (id: string, ...link: object[]) => ({
  resourceType: 'Patient',
  id,
  name: [{ family: 'Roe', given: ['Cleo'] }],
  identifier: [{ system: MRN, value: `m-${id}` }],
  link,
});

/** The survivor that the hint of each chart names; null if it names none. */
function survivors(resources: object[], idSystems: string[] = []): Record<string, string | null> {
  const references = new ProviderReferences(1_000, idSystems);
  const charts = new MergedCharts(1_000);
  for (const event of readFhir(resources, { idSystems })) {
    if (event.type === 'merge') charts.add(event, 1);
    else if (event.type === 'row' || event.type === 'alias' || event.type === 'link') references.add(event);
  }
  return Object.fromEntries(
    charts.resolve(references).map(({ externalId, hint }) => [externalId, /"into": "(.*)"/.exec(hint)?.[1] ?? null]),
  );
}

describe('the chart that stands for a merged one', () => {
  it.each<[string, object[], Record<string, string | null>]>([
    ['is named by the merged one', [patient('a', into('Patient/b'))], { a: 'b' }],
    ['is unknown if it is on another server', [patient('a', into('https://ehr.example/fhir/Patient/b'))], { a: null }],
    ['says so itself', [patient('b', into('Patient/a', 'replaces'))], { a: 'b' }],
    [
      'is at the end of a chain',
      [patient('a', into('Patient/b')), patient('b', into('Patient/c'))],
      { a: 'c', b: 'c' },
    ],
    ['is unknown without a usable reference', [patient('a', into('urn:x', 'replaced-by'))], { a: null }],
    ['is unknown if the link has no Patient', [patient('a', into('RelatedPerson/b'))], { a: null }],
    ['is unknown if several are named', [patient('a', into('Patient/b'), into('Patient/c'))], { a: null }],
    ['is not the merged one', [patient('a', into('Patient/a'))], { a: null }],
    [
      'is unknown in a circle',
      [patient('a', into('Patient/b')), patient('b', into('Patient/a'))],
      { a: null, b: null },
    ],
    ['is none for other links', [patient('a', into('Patient/b', 'refer'), into('Patient/c', 'seealso'))], {}],
  ])('%s', (_, resources, expected) => {
    expect(survivors(resources)).toEqual(expected);
  });

  it('is named by its identifier, or by its resource in the import, if the ids are identifiers', () => {
    const byIdentifier = { type: 'replaced-by', other: { identifier: { system: MRN, value: 'm-9' } } };
    const charts = [
      patient('a', into('Patient/b')),
      patient('b'),
      patient('c', byIdentifier),
      patient('d', into('Patient/x')),
    ];
    expect(survivors(charts, [MRN])).toEqual({ 'm-a': 'm-b', 'm-c': 'm-9', 'm-d': null });
  });
});
