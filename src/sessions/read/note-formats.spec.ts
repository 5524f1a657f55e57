import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { NoteResponse, NotesResponse, SessionResponse } from '../model/session-view.js';
import { notesAsFhir } from './notes-fhir.js';
import { notesAsMarkdown } from './notes-markdown.js';

const DOCUMENT = '0f4bb8a2-6a0e-4d3b-9b53-0d5b6a6c1a01';

function note(category: string, text: string, nestingLevel = 0, categoryName: string | null = null): NoteResponse {
  return { category, categoryName, text, nestingLevel };
}

/** The notes of a session with one document. */
function notesOf(lines: NoteResponse[], more: Partial<NotesResponse['documents'][number]> = {}): NotesResponse {
  const document = {
    documentId: DOCUMENT,
    sessionDocumentId: 'd-1',
    noteTemplateId: 'soap',
    noteTemplateName: null,
    revision: 1,
    incomplete: false,
    fetchedAt: new Date('2026-03-01T10:00:00.000Z'),
    supersededAt: null,
    removedAt: null,
    notes: lines,
    ...more,
  };
  return { sessionId: 's-1', notesRevision: 1, documents: [document] };
}

function sessionOf(more: Partial<SessionResponse> = {}): SessionResponse {
  const session: Partial<SessionResponse> = {
    id: '9d0b7c40-31c8-4a55-8a4e-5f3a2b1c0d9e',
    partnerAppointmentId: 'appointment-1',
    provider: 'p-1',
    clients: ['c-1'],
    providerUserId: 'u-1',
    clientUserIds: ['u-2'],
    state: 'Done',
    updatedAt: new Date('2026-03-01T10:00:01.000Z'),
  };
  return { ...session, ...more } as SessionResponse;
}

const body = (...lines: Parameters<typeof notesOf>[0]) =>
  notesAsMarkdown(notesOf(lines)).split('\n').slice(4).join('\n');

describe('notes as Markdown', () => {
  test('have a heading for each document and category, and list items by level', () => {
    const notes = notesOf([
      note('ClientPresentation', 'Calm today.', 0, 'Client presentation'),
      note('Plan', 'Goals:'),
      note('Plan', 'Sleep', 1),
      note('Plan', 'Eight hours', 2),
      note('ClientPresentation', 'Left early.'),
    ]);
    expect(notesAsMarkdown(notes)).toBe(
      [
        '# Session notes',
        '## Note template soap, revision 1',
        '### Client presentation',
        'Calm today.',
        'Left early.',
        '### Plan',
        'Goals:',
        '- Sleep\n  - Eight hours\n',
      ].join('\n\n'),
    );
  });

  test('are headed by the name of their template, if the contract file has one', () => {
    const notes = notesOf([], { noteTemplateName: 'SOAP *note*' });
    expect(notesAsMarkdown(notes)).toBe('# Session notes\n\n## SOAP \\*note\\*, revision 1\n');
  });

  test('escape markup in the text of a note', () => {
    expect(body(note('Plan', '# not a heading'))).toContain('\n\\# not a heading');
    expect(body(note('Plan', '1. not a list'))).toContain('1\\. not a list');
    expect(body(note('Plan', '<script>*x*</script>'))).toContain('\\<script>\\*x\\*\\</script>');
    expect(body(note('Plan', '    not code'))).not.toContain('    not code');
    expect(body(note('Plan', 'first\n---'))).toContain('first\n\\---');
  });

  test('never skip a list level, and indent the further lines of an item', () => {
    expect(body(note('Plan', 'deep', 5), note('Plan', 'two\nlines', 1))).toContain('- deep\n- two\n  lines');
  });

  test('state that notes were removed or cannot be decrypted', () => {
    const at = new Date('2026-03-01T11:00:00.000Z');
    expect(notesAsMarkdown(notesOf([], { removedAt: at }))).toContain('were removed at 2026-03-01T11:00:00.000Z.');
    expect(notesAsMarkdown(notesOf([], { unreadable: ['notes'] }))).toContain('changed or moved');
  });

  test('omit superseded documents, and state that no document is left', () => {
    const gone = notesOf([note('Plan', 'x')], { supersededAt: new Date('2026-03-01T11:00:00.000Z') });
    expect(notesAsMarkdown(gone)).toBe('# Session notes\n\nNo notes are available.\n');
  });
});

type FhirElement = ReturnType<typeof notesAsFhir>;

const NOW = new Date('2026-03-01T12:00:00.000Z');
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

type Resource = FhirElement & { resourceType: string };

function resourcesOf(bundle: FhirElement): Resource[] {
  return ((bundle.entry ?? []) as FhirElement[]).map((entry) => entry.resource as Resource);
}

/** Empty texts, arrays and objects, which FHIR R4 forbids (hl7.org/fhir/R4/json.html). */
function emptyParts(value: FhirElement[string], path = ''): string[] {
  if (typeof value === 'number' || typeof value === 'boolean') return [];
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
    expect(bundle).not.toHaveProperty('identifier');
    const [reference, ...more] = resourcesOf(bundle);
    const loinc = {
      coding: [{ system: 'http://loinc.org', code: '34904-3', display: 'Mental health Progress note' }],
    };
    expect(reference).toMatchObject({
      resourceType: 'DocumentReference',
      id: DOCUMENT,
      status: 'current',
      docStatus: 'final',
      type: loinc,
      subject: { type: 'Patient', identifier: { value: 'c-1' } },
      author: [{ type: 'Practitioner', identifier: { value: 'p-1' } }],
      meta: {
        versionId: expect.stringMatching(/^1772359201000-[\da-f]{12}$/),
        lastUpdated: '2026-03-01T10:00:01.000Z',
      },
      context: { encounter: [{ type: 'Encounter', identifier: { value: 'appointment-1' } }] },
    });
    const [content] = (reference?.content ?? []) as { attachment: { data: string } }[];
    expect(Buffer.from(content?.attachment.data ?? '', 'base64').toString()).toContain('- Sleep');
    expect(more).toEqual([]);
  });

  test('have another version whenever their content is another, also without a change of the session', () => {
    const versionOf = (session = sessionOf(), more = {}) => {
      const [resource] = resourcesOf(notesAsFhir(session, notesOf([note('Plan', 'x')], more), NOW));
      return (resource as Resource & { meta: FhirElement }).meta.versionId;
    };
    expect(versionOf()).toBe(versionOf());
    const versions = [
      versionOf(),
      versionOf(sessionOf(), { notes: [], removedAt: NOW }),
      versionOf(sessionOf(), { noteTemplateName: 'SOAP note' }),
      versionOf(sessionOf({ clients: ['c-2'] })),
      versionOf(sessionOf({ clients: [], clientUserIds: [], provider: null, providerUserId: null })),
      versionOf(sessionOf({ updatedAt: NOW })),
    ];
    expect(new Set(versions).size).toBe(versions.length);
  });

  test('have no author if the provider is unknown or hidden', () => {
    const bundle = notesAsFhir(sessionOf({ provider: null, providerUserId: null }), notesOf([note('Plan', 'x')]), NOW);
    expect(faultsOf(bundle)).toEqual([]);
    expect(resourcesOf(bundle)[0]).not.toHaveProperty('author');
  });

  test('name their template in title and description, if the contract file does', () => {
    const of = (more = {}) => {
      const [resource] = resourcesOf(notesAsFhir(sessionOf(), notesOf([note('Plan', 'x')], more), NOW));
      const [content] = (resource?.content ?? []) as { attachment: { title: string } }[];
      return [content?.attachment.title, resource?.description];
    };
    expect(of()).toEqual(['Therapy session note', 'Therapy session note, template soap, revision 1']);
    expect(of({ noteTemplateName: 'SOAP note' })).toEqual([
      'SOAP note',
      'Therapy session note, template SOAP note, revision 1',
    ]);
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
    const related = [session.id, 'c-1', 'c-2', 'appointment-1'].map((value) => ({ identifier: { value } }));
    expect(resourcesOf(bundle)[0]).toMatchObject({ author: [{ identifier: { value: 'u-1' } }], context: { related } });
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
