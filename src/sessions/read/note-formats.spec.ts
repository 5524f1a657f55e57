import fc from 'fast-check';
import type { Bundle, DocumentReference } from 'fhir/r4';
import { fhirFaults } from '../../../harness/fhir-faults.js';
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
    date: null,
    sessionDurationMs: null,
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

const NOW = new Date('2026-03-01T12:00:00.000Z');

/** The documents of a valid Bundle. */
function resourcesOf(bundle: Bundle): DocumentReference[] {
  expect(fhirFaults(bundle)).toEqual([]);
  return (bundle.entry ?? []).map(({ resource }) => resource as DocumentReference);
}

/** The document of a session with one note. */
function resourceOf(session: Partial<SessionResponse> = {}, more: Parameters<typeof notesOf>[1] = {}) {
  const [resource] = resourcesOf(notesAsFhir(sessionOf(session), notesOf([note('Plan', 'x')], more), NOW));
  return resource as DocumentReference;
}

describe('notes as FHIR R4', () => {
  test('are a collection with a DocumentReference for each document', () => {
    const notes = notesOf([
      note('Plan', 'Goals:', 0, 'The plan'),
      note('Plan', 'Sleep', 1),
      note('Assessment', 'Calm.'),
    ]);
    const bundle = notesAsFhir(sessionOf(), notes, NOW);
    expect(bundle).toMatchObject({ type: 'collection', timestamp: NOW.toISOString() });
    expect(bundle).not.toHaveProperty('identifier');
    const [reference, ...more] = resourcesOf(bundle);
    const loinc = {
      coding: [{ system: 'http://loinc.org', code: '34904-3', display: 'Mental health Progress note' }],
    };
    expect(reference).toMatchObject({
      resourceType: 'DocumentReference',
      id: DOCUMENT,
      status: 'current',
      docStatus: 'preliminary',
      type: loinc,
      subject: { type: 'Patient', identifier: { value: 'c-1' } },
      author: [{ type: 'Practitioner', identifier: { value: 'p-1' } }],
      meta: {
        versionId: expect.stringMatching(/^1772359201000-[\da-f]{12}$/),
        lastUpdated: '2026-03-01T10:00:01.000Z',
      },
      context: { encounter: [{ type: 'Encounter', identifier: { value: 'appointment-1' } }] },
    });
    const data = reference?.content[0]?.attachment.data ?? '';
    expect(Buffer.from(data, 'base64').toString()).toContain('- Sleep');
    expect(more).toEqual([]);
  });

  test('have another version whenever their content is another, also without a change of the session', () => {
    const versionOf = (...[session, more]: Parameters<typeof resourceOf>) => resourceOf(session, more).meta?.versionId;
    expect(versionOf()).toBe(versionOf());
    const versions = [
      versionOf(),
      versionOf({}, { notes: [], removedAt: NOW }),
      versionOf({}, { noteTemplateName: 'SOAP note' }),
      versionOf({ clients: ['c-2'] }),
      versionOf({ clients: [], clientUserIds: [], provider: null, providerUserId: null }),
      versionOf({ updatedAt: NOW }),
    ];
    expect(new Set(versions).size).toBe(versions.length);
  });

  test('have no author if the provider is unknown or hidden', () => {
    expect(resourceOf({ provider: null, providerUserId: null })).not.toHaveProperty('author');
  });

  test('name their template in title and description, if the contract file does', () => {
    const of = (more = {}) => {
      const { content, description } = resourceOf({}, more);
      return [content[0]?.attachment.title, description];
    };
    expect(of()).toEqual(['Therapy session note', 'Therapy session note, template soap, revision 1']);
    expect(of({ noteTemplateName: 'SOAP note' })).toEqual([
      'SOAP note',
      'Therapy session note, template SOAP note, revision 1',
    ]);
  });

  test.each([
    [{}, {}],
    [{}, { revision: 2 }],
    [{}, { revision: 3, unreadable: ['notes'], notes: [] }],
    [{ state: 'Processing' }, {}],
    [{ state: 'Error' }, { revision: 2 }],
  ])('are preliminary in any state and version, because the platform shows no signature', (session, more) => {
    expect(resourceOf(session, more)).toMatchObject({ status: 'current', docStatus: 'preliminary' });
  });

  test('are superseded once the platform no longer has them', () => {
    expect(resourceOf({}, { supersededAt: NOW })).toMatchObject({ status: 'superseded', docStatus: 'preliminary' });
  });

  test.each([
    ['2026-02-28T09:00:00.000Z', null, { start: '2026-02-28T09:00:00.000Z' }],
    ['2026-02-28T09:00:00+01:00', 3_000_000, { start: '2026-02-28T09:00:00+01:00', end: '2026-02-28T08:50:00.000Z' }],
    ['2026-02-28T09:00Z', null, { start: '2026-02-28' }],
    ['2026-02-28T09:00:00Z', 1e20, { start: '2026-02-28T09:00:00Z' }],
    ['2026-02-28', 3_000_000, { start: '2026-02-28' }],
    ['2026-02-28T09:00:00', 3_000_000, { start: '2026-02-28' }],
    ['2026-02-28T09:00:00+15:30', null, { start: '2026-02-28' }],
    ['2026-02-30', null, undefined],
    ['0000-01-01', null, undefined],
    ['tomorrow', null, undefined],
    [null, null, undefined],
  ])('of a session on %s of %s ms have the period %j', (date, sessionDurationMs, period) => {
    expect(resourceOf({ date, sessionDurationMs }).context?.period).toEqual(period);
  });

  test('have no subject if their session has several clients, because no note says whom it is about', () => {
    const several = { provider: null, clients: ['c-1', 'c-2'], clientUserIds: ['u-2', 'u-3'] };
    const { subject, author, context } = resourceOf(several);
    expect([subject, author?.map(({ identifier }) => identifier?.value)]).toEqual([undefined, ['u-1']]);
    expect(context?.related?.map(({ identifier }) => identifier?.value)).toEqual([
      ...[sessionOf().id, 'c-1', 'c-2', 'appointment-1'],
    ]);
    const oneKnown = resourceOf({ clients: ['c-1'], clientUserIds: ['u-2', 'u-3'] });
    expect(oneKnown).not.toHaveProperty('subject');
  });

  test('are a bundle without entries if there are none, because FHIR forbids empty arrays', () => {
    const bundle = notesAsFhir(sessionOf(), { sessionId: 's-1', notesRevision: 0, documents: [] }, NOW);
    expect(resourcesOf(bundle)).toEqual([]);
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
        expect(resourcesOf(notesAsFhir(sessionOf(), notesOf(lines), NOW))).toHaveLength(1);
      }),
      propertyRuns(),
    );
  });
});
