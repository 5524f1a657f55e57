import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { readSession, type Session, type SessionAnswer } from './session-answer.js';

const USER = '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
const OTHER = '0e1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
const MEASURES = {
  talkingRatio: ['ratio', 'ratioLongTerm', 'duration', 'durationLongTerm'],
  speechCadence: ['cadence', 'cadenceLongTerm'],
  responseTime: ['time', 'timeLongTerm'],
  sentiment: ['positive', 'positiveLongTerm', 'negative', 'negativeLongTerm'],
  timePerspective: ['future', 'futureLongTerm', 'past', 'pastLongTerm'],
};

/** A Session with every field that the spec names (Resources, Session), and lists of two. */
const whole = (): Session => {
  const two = <T>(make: (at: number) => T): T[] => [make(0), make(1)];
  const span = { start: 0, end: 900 };
  return {
    sessionId: 's-1',
    partnerAppointmentId: 'visit-17',
    noteTemplateIds: ['t-0', 't-1'],
    date: '2026-01-31T08:00:00Z',
    sessionCreatedAt: '2026-01-31T08:00:01Z',
    providerUserId: 'p-1',
    clientUserIds: ['c-0', 'c-1'],
    state: 'Error',
    error: { code: 'low-content-transcript', message: 'Too little audio.' },
    sessionDurationMs: 3_000_000,
    recordingDurationMs: 2_900_000,
    recordingUrl: 'https://files.example.org/1.wav',
    transcript: {
      utterances: two((at) => {
        return { ...span, text: `Hello ${at}.`, speaker: 'A', words: two((word) => ({ ...span, text: `${word}` })) };
      }),
      speakerMapping: { A: USER, B: USER },
    },
    topics: two((at) => ({ ...span, headline: 'Sleep', gist: `Sleeps better ${at}.` })),
    namedEntities: two((at) => ({ entityType: 'location', name: `The quarry ${at}`, summary: 'Where it happened.' })),
    notes: two((document) => {
      const line = { category: 'Plan', categoryName: 'The plan', formatting: { nestingLevel: 1 } };
      return {
        sessionDocumentId: `d-${document}`,
        noteTemplateId: `t-${document}`,
        notes: two((at) => ({ ...line, text: `Sleep ${document} ${at}.` })),
      };
    }),
    analyticsSummary: Object.fromEntries(
      Object.entries(MEASURES).map(([measure, fields]) => {
        const numbers = () => Object.fromEntries(fields.map((field) => [field, 0.5]));
        return [measure, { [USER]: numbers(), [OTHER]: numbers() }];
      }),
    ),
  };
};

const read = (value: unknown): SessionAnswer => {
  const reading = readSession(JSON.parse(JSON.stringify(value)));
  if ('fault' in reading) throw new Error(`fault at ${reading.fault}`);
  return reading.session;
};
const faultOf = (value: unknown) => {
  const reading = readSession(value);
  return 'fault' in reading ? reading.fault : undefined;
};

/** The whole Session after a change at one place. An undefined value removes it, also from a list. */
function changed(pointer: string, value: unknown, session: object = whole()): unknown {
  const copy: unknown = JSON.parse(JSON.stringify(session));
  const steps = pointer.slice(1).split('/');
  const last = steps.pop() ?? '';
  const parent = steps.reduce((place, step) => (place as Record<string, unknown>)[step], copy);
  if (Array.isArray(parent) && value === undefined) parent.splice(Number(last), 1);
  else if (value === undefined) delete (parent as Record<string, unknown>)[last];
  else (parent as Record<string, unknown>)[last] = value;
  return copy;
}

type Kind = 'text' | 'id' | 'number' | 'list' | 'object';
const texts = fc.constantFrom('', ' ', 'x', '7', '\0', '\ud800');
const lists = fc.array(fc.constantFrom(0, 'x'), { maxLength: 2 });
const objects = fc.constantFrom({}, { a: 1 });
/** For each kind, values of any other. */
const ODD: Record<Kind, fc.Arbitrary<unknown>> = {
  text: fc.oneof(fc.integer(), fc.boolean(), lists, objects),
  id: fc.oneof(fc.integer(), lists, objects, fc.constantFrom('', ' ', 'a\0', '\udfff', 'x'.repeat(513))),
  number: fc.oneof(texts, fc.boolean(), lists, objects),
  list: fc.oneof(texts, fc.integer(), objects),
  object: fc.oneof(texts, fc.integer(), fc.boolean()),
};

/** Each place with its kind and the smallest part around it, which is lost if the place is malformed. */
const PLACES: [pointer: string, Kind, lost?: string][] = [
  ...['providerUserId', 'partnerAppointmentId'].map((name): [string, Kind] => [`/${name}`, 'id']),
  ...['date', 'sessionCreatedAt', 'recordingUrl'].map((name): [string, Kind] => [`/${name}`, 'text']),
  ...['sessionDurationMs', 'recordingDurationMs'].map((name): [string, Kind] => [`/${name}`, 'number']),
  ...['noteTemplateIds', 'clientUserIds', 'topics', 'namedEntities', 'notes'].map((name): [string, Kind] => [
    `/${name}`,
    'list',
  ]),
  ['/noteTemplateIds/0', 'id'],
  ['/clientUserIds/1', 'id'],
  ['/error', 'object'],
  ['/error/code', 'text', '/error'],
  ['/error/message', 'text', '/error'],
  ['/transcript', 'object'],
  ['/transcript/utterances', 'list'],
  ['/transcript/utterances/0', 'object'],
  ['/transcript/utterances/0/text', 'text', '/transcript/utterances/0'],
  ['/transcript/utterances/1/start', 'number', '/transcript/utterances/1'],
  ['/transcript/utterances/0/end', 'number', '/transcript/utterances/0'],
  ['/transcript/utterances/0/speaker', 'text', '/transcript/utterances/0'],
  ['/transcript/utterances/0/words', 'list', '/transcript/utterances/0'],
  ['/transcript/utterances/0/words/0/text', 'text', '/transcript/utterances/0/words/0'],
  ['/transcript/utterances/0/words/1/start', 'number', '/transcript/utterances/0/words/1'],
  ['/transcript/utterances/0/words/0/end', 'number', '/transcript/utterances/0/words/0'],
  ['/transcript/speakerMapping', 'object'],
  ['/transcript/speakerMapping/A', 'text'],
  ['/topics/0/headline', 'text', '/topics/0'],
  ['/topics/0/gist', 'text', '/topics/0'],
  ['/topics/1/start', 'number', '/topics/1'],
  ['/topics/1/end', 'number', '/topics/1'],
  ['/namedEntities/0/entityType', 'text', '/namedEntities/0'],
  ['/namedEntities/1/name', 'text', '/namedEntities/1'],
  ['/namedEntities/1/summary', 'text'],
  ['/notes/0', 'object'],
  ['/notes/0/sessionDocumentId', 'id', '/notes/0'],
  ['/notes/1/noteTemplateId', 'id', '/notes/1'],
  ['/notes/1/notes', 'list', '/notes/1'],
  ['/notes/0/notes/0', 'object'],
  ['/notes/0/notes/0/text', 'text', '/notes/0/notes/0'],
  ['/notes/1/notes/0/categoryName', 'text'],
  ['/notes/1/notes/1/formatting', 'object'],
  ['/notes/1/notes/1/formatting/nestingLevel', 'number'],
  ['/analyticsSummary', 'object'],
  ...Object.entries(MEASURES).flatMap(([measure, fields]): [string, Kind][] => [
    [`/analyticsSummary/${measure}`, 'object'],
    [`/analyticsSummary/${measure}/${OTHER}`, 'object'],
    ...fields.map((field): [string, Kind] => [`/analyticsSummary/${measure}/${USER}/${field}`, 'number']),
  ]),
];

/** The session as it shows the loss of a part of a document, or of a whole one. */
function marked(lost: string): object {
  const inDocument = /^\/notes\/(\d)\//.exec(lost);
  const session = changed(lost, undefined) as Session;
  if (inDocument) Object.assign(session.notes?.[Number(inDocument[1])] ?? {}, { incomplete: true });
  return /^\/notes\/\d$/.test(lost) ? { ...session, notesIncomplete: true } : session;
}

describe('a Session', () => {
  it('is read completely', () => {
    expect(read(whole())).toEqual({ ...whole(), incomplete: [] });
  });

  it.each(PLACES)('loses exactly the smallest part around an odd %s', (pointer, kind, lost = pointer) => {
    fc.assert(
      fc.property(ODD[kind], (odd) => {
        // A blank appointment id is storable.
        fc.pre(pointer !== '/partnerAppointmentId' || !/^ ?$/.test(String(odd)));
        expect(read(changed(pointer, odd))).toEqual({ ...marked(lost), incomplete: [pointer.split('/')[1]] });
      }),
      propertyRuns(0.05),
    );
  });

  it.each([undefined, null])('has an empty document instead of %s, and is complete', (none) => {
    const list = '/notes/0/notes';
    expect(read(changed(list, none))).toEqual({ ...(changed(list, []) as Session), incomplete: [] });
  });

  it.each([undefined, null])('does not say who took part, or by which templates, if it has %s', (none) => {
    for (const list of ['/noteTemplateIds', '/clientUserIds'])
      expect(read(changed(list, none))).toEqual({ ...(changed(list, none) as Session), incomplete: [] });
  });

  it.each(PLACES.filter(([pointer]) => /^\/[^/]+$/.test(pointer) && !/Ids|provider/.test(pointer)))(
    'may have null or nothing at %s',
    (pointer) => {
      for (const none of [undefined, null])
        expect(read(changed(pointer, none))).toEqual({ ...(changed(pointer, none) as Session), incomplete: [] });
    },
  );

  it.each([null, 7, []])('keeps the text of a line with the category %j', (category) => {
    const expected = changed('/notes/0/notes/0/category', '', marked('/notes/0/x'));
    expect(read(changed('/notes/0/notes/0/category', category))).toEqual({
      ...(expected as Session),
      incomplete: ['notes'],
    });
  });

  it('keeps a document without a readable line, as empty and incomplete', () => {
    const expected = changed('/notes/0/notes', [], marked('/notes/0/x'));
    const lines = [null, 'x', { category: 'Plan', text: null }];
    expect(read(changed('/notes/0/notes', lines))).toEqual({ ...(expected as Session), incomplete: ['notes'] });
  });

  it('names every incomplete part once', () => {
    const session = { ...whole(), topics: [1, 2], notes: [1, 2], sessionDurationMs: 'long', state: 'Paused' };
    expect(read(session)).toMatchObject({ incomplete: ['state', 'sessionDurationMs', 'topics', 'notes'], topics: [] });
  });

  it('takes no mark from the platform', () => {
    const marks = { incomplete: ['notes'], notesIncomplete: true };
    const session = changed('/notes/0/incomplete', true, { ...whole(), ...marks });
    expect(read(session)).toEqual({ ...whole(), incomplete: [] });
  });

  it.each(['InProgress', 'Processing', 'Done', 'Error'])('may be %s', (state) => {
    expect(read({ ...whole(), state })).toEqual({ ...whole(), state, incomplete: [] });
  });

  it.each(['done', 'Paused', 'x'.repeat(64)])('keeps a state that the spec does not name: %s', (state) => {
    expect(read({ ...whole(), state })).toEqual({ ...whole(), state, incomplete: ['state'] });
  });

  it.each([undefined, null, 7, '', ' ', 'a\0', '\ud800', 'x'.repeat(65), ['Done']])(
    'is none with the state %j',
    (state) => {
      expect(faultOf({ ...whole(), state })).toBe('/state');
    },
  );

  it.each([undefined, null, 7, '', ' ', 'a\0', 'x'.repeat(513)])('is none with the id %j', (sessionId) => {
    expect(faultOf({ ...whole(), sessionId })).toBe('/sessionId');
  });

  it.each([null, 'Done', 7, [], [whole()]])('is not %j', (value) => {
    expect(faultOf(value)).toBe('');
  });
});

describe('reading', () => {
  it('is total: any JSON is a Session or has a fault', () => {
    const anyPlace = fc.constantFrom(...PLACES.map(([pointer]) => pointer));
    const oddSession = fc.array(fc.tuple(anyPlace, fc.jsonValue()), { maxLength: 3 }).map((changes) =>
      changes.reduce<unknown>((session, [pointer, value]) => {
        try {
          return changed(pointer, value, session as object);
        } catch {
          return session;
        }
      }, whole()),
    );
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), oddSession), (value) => {
        const before = JSON.stringify(value);
        const reading = readSession(value);
        expect('fault' in reading ? typeof reading.fault : typeof reading.session.sessionId).toBe('string');
        expect(JSON.stringify(value)).toBe(before);
      }),
      propertyRuns(),
    );
  });

  it('needs little memory for an answer full of faults', () => {
    const faults = Array.from({ length: 1_000_000 }, () => 0);
    const before = process.memoryUsage().heapUsed;
    expect(read({ ...whole(), topics: faults, noteTemplateIds: faults }).incomplete).toEqual([
      'noteTemplateIds',
      'topics',
    ]);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(150_000_000);
  });
});
