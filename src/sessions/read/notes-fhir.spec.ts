import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { DOCUMENT, note, notesOf, sessionOf } from './notes-documents.spec-support.js';
import { notesAsFhir } from './notes-fhir.js';

type FhirElement = ReturnType<typeof notesAsFhir>;

const NOW = new Date('2026-03-01T12:00:00.000Z');
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

type Resource = FhirElement & { resourceType: string };

function resourcesOf(bundle: FhirElement): Resource[] {
  return ((bundle.entry ?? []) as FhirElement[]).map((entry) => entry.resource as Resource);
}

/** Empty texts, arrays and objects, which FHIR R4 forbids (hl7.org/fhir/R4/json.html). */
function emptyParts(value: FhirElement[string], path = ''): string[] {
  if (typeof value === 'string') return value.trim() === '' ? [path] : [];
  if (Array.isArray(value))
    return value.length === 0 ? [path] : value.flatMap((item, i) => emptyParts(item, `${path}/${i}`));
  const entries = Object.entries(value);
  return entries.length === 0 ? [path] : entries.flatMap(([name, item]) => emptyParts(item, `${path}/${name}`));
}

/** Violations of hl7.org/fhir/R4. */
function faultsOf(bundle: FhirElement): string[] {
  const resources = resourcesOf(bundle);
  const entries = (bundle.entry ?? []) as FhirElement[];
  const urls = entries.map((entry) => entry.fullUrl as string);
  return [
    ...emptyParts(bundle),
    ...(bundle.type === 'collection' && INSTANT.test(bundle.timestamp as string) ? [] : ['bundle']),
    ...(new Set(urls).size === urls.length ? [] : ['fullUrl twice']),
    ...urls.filter(
      (url, i) => !/^urn:uuid:[0-9a-f-]{36}$/.test(url) || url !== `urn:uuid:${resources[i]?.id as string}`,
    ),
    ...resources.flatMap((resource) => ['status', 'content'].filter((field) => resource[field] === undefined)),
    ...resources.filter((resource) => !INSTANT.test(resource.date as string)).map(() => 'date'),
  ];
}

describe('notes as FHIR R4', () => {
  test('are a collection with a DocumentReference for each document', () => {
    const notes = notesOf([
      note('Plan', 'Goals:', 0, 'The plan'),
      note('Plan', 'Sleep', 1),
      note('Assessment', 'Calm.'),
    ]);
    const bundle = notesAsFhir(sessionOf(), notes, NOW);
    expect(faultsOf(bundle)).toEqual([]);
    const [reference, ...more] = resourcesOf(bundle);
    const loinc = { coding: [{ system: 'http://loinc.org', code: '34904-3' }] };
    expect(reference).toMatchObject({
      resourceType: 'DocumentReference',
      id: DOCUMENT,
      status: 'current',
      docStatus: 'final',
      type: loinc,
      subject: { type: 'Patient', identifier: { value: 'c-1' } },
      author: [{ type: 'Practitioner', identifier: { value: 'p-1' } }],
    });
    const [content] = (reference?.content ?? []) as { attachment: { data: string } }[];
    expect(Buffer.from(content?.attachment.data ?? '', 'base64').toString()).toContain('- Sleep');
    expect(more).toEqual([]);
  });

  test('have a status for changed, unfinished and superseded notes', () => {
    const statuses = (session = sessionOf(), more = {}) =>
      resourcesOf(notesAsFhir(session, notesOf([note('Plan', 'x')], more), NOW)).map(({ status, docStatus }) => [
        status,
        docStatus,
      ]);
    expect(statuses(sessionOf(), { revision: 2 })).toEqual([['current', 'amended']]);
    expect(statuses(sessionOf({ state: 'Processing' }))).toEqual([['current', 'preliminary']]);
    expect(statuses(sessionOf(), { supersededAt: new Date('2026-03-01T11:00:00.000Z') })).toEqual([
      ['superseded', 'final'],
    ]);
    expect(statuses(sessionOf(), { notes: [], unreadable: ['notes'] })).toEqual([['current', 'final']]);
  });

  test('name the known people of a session without a mapped provider or with several clients', () => {
    const session = sessionOf({ provider: null, clients: ['c-1', 'c-2'], clientUserIds: ['u-2', 'u-3'] });
    const bundle = notesAsFhir(session, notesOf([note('Plan', 'x')]), NOW);
    expect(faultsOf(bundle)).toEqual([]);
    expect(resourcesOf(bundle)[0]).not.toHaveProperty('subject');
    expect(resourcesOf(bundle)[0]).toMatchObject({ author: [{ identifier: { value: 'u-1' } }] });
  });

  test('are a bundle without entries if there are none, because FHIR forbids empty arrays', () => {
    const bundle = notesAsFhir(sessionOf(), { sessionId: 's-1', notesRevision: 0, documents: [] }, NOW);
    expect(faultsOf(bundle)).toEqual([]);
    expect(bundle).not.toHaveProperty('entry');
  });

  test('are valid R4 for any text', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('<b>&amp;</b>', '\u0000\u0007', ' ', ']]>'));
    const line = fc.record({
      category: text,
      categoryName: fc.option(text),
      text,
      nestingLevel: fc.integer({ min: -2, max: 12 }),
    });
    fc.assert(
      fc.property(fc.array(line, { maxLength: 12 }), (lines) => {
        expect(faultsOf(notesAsFhir(sessionOf(), notesOf(lines), NOW))).toEqual([]);
      }),
      propertyRuns(),
    );
  });
});
