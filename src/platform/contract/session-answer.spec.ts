import { readSession, type Session } from './session-answer.js';

const USER = '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
const measures = {
  talkingRatio: ['ratio', 'ratioLongTerm', 'duration', 'durationLongTerm'],
  speechCadence: ['cadence', 'cadenceLongTerm'],
  responseTime: ['time', 'timeLongTerm'],
  sentiment: ['positive', 'positiveLongTerm', 'negative', 'negativeLongTerm'],
  timePerspective: ['future', 'futureLongTerm', 'past', 'pastLongTerm'],
};

/** A Session with every field that the spec names (Resources, Session). */
const whole = (): Session => ({
  sessionId: 's-1',
  partnerAppointmentId: 'visit-17',
  noteTemplateIds: ['t-1'],
  date: '2026-01-31T08:00:00Z',
  sessionCreatedAt: '2026-01-31T08:00:01Z',
  providerUserId: 'p-1',
  clientUserIds: ['c-1'],
  state: 'Error',
  error: { code: 'low-content-transcript', message: 'Too little audio.' },
  sessionDurationMs: 3_000_000,
  recordingDurationMs: 2_900_000,
  recordingUrl: 'https://files.example.org/1.wav',
  transcript: {
    utterances: [{ text: 'Hello.', start: 0, end: 900, speaker: 'A', words: [{ text: 'Hello.', start: 0, end: 900 }] }],
    speakerMapping: { A: USER },
  },
  topics: [{ headline: 'Sleep', gist: 'Sleeps better.', start: 0, end: 900 }],
  namedEntities: [{ entityType: 'location', name: 'The quarry', summary: 'Where it happened.' }],
  notes: [
    {
      sessionDocumentId: 'd-1',
      noteTemplateId: 't-1',
      notes: [{ category: 'Plan', categoryName: 'The plan', text: 'Sleep.', formatting: { nestingLevel: 1 } }],
    },
  ],
  analyticsSummary: Object.fromEntries(
    Object.entries(measures).map(([measure, fields]) => [
      measure,
      { [USER]: Object.fromEntries(fields.map((field) => [field, 0.5])) },
    ]),
  ),
});

/** The whole Session with one place changed; undefined takes it away. `*` is the user's id. */
function changed(pointer: string, value: unknown): unknown {
  const session: unknown = JSON.parse(JSON.stringify(whole()));
  const steps = pointer.slice(1).split('/');
  const last = steps.pop() ?? '';
  const parent = steps.reduce(
    (place, step) => (place as Record<string, unknown>)[step === '*' ? USER : step],
    session,
  ) as Record<string, unknown>;
  if (!Object.hasOwn(parent, last)) throw new Error(`The whole Session has no ${pointer}.`);
  parent[last] = value;
  return JSON.parse(JSON.stringify(session));
}

type Kind = 'string' | 'string[]' | 'number' | 'object' | 'object[]';
const WRONG: Record<Kind, unknown[]> = {
  string: [7, {}, []],
  'string[]': ['x', {}, [7]],
  number: ['7', true, {}],
  object: ['x', 7, []],
  'object[]': ['x', {}, ['x']],
};

const REQUIRED: [string, Kind][] = [
  ['/sessionId', 'string'],
  ['/noteTemplateIds', 'string[]'],
  ['/providerUserId', 'string'],
  ['/clientUserIds', 'string[]'],
  ['/state', 'string'],
  ['/error/code', 'string'],
  ['/error/message', 'string'],
  ['/transcript/utterances/0/text', 'string'],
  ['/transcript/utterances/0/start', 'number'],
  ['/transcript/utterances/0/end', 'number'],
  ['/transcript/utterances/0/speaker', 'string'],
  ['/transcript/utterances/0/words', 'object[]'],
  ['/transcript/utterances/0/words/0/text', 'string'],
  ['/transcript/utterances/0/words/0/start', 'number'],
  ['/transcript/utterances/0/words/0/end', 'number'],
  ['/topics/0/headline', 'string'],
  ['/topics/0/gist', 'string'],
  ['/topics/0/start', 'number'],
  ['/topics/0/end', 'number'],
  ['/namedEntities/0/entityType', 'string'],
  ['/namedEntities/0/name', 'string'],
  ['/notes/0/sessionDocumentId', 'string'],
  ['/notes/0/noteTemplateId', 'string'],
  ['/notes/0/notes', 'object[]'],
  ['/notes/0/notes/0/category', 'string'],
  ['/notes/0/notes/0/text', 'string'],
];

const OPTIONAL: [string, Kind][] = [
  ['/partnerAppointmentId', 'string'],
  ['/date', 'string'],
  ['/sessionCreatedAt', 'string'],
  ['/error', 'object'],
  ['/sessionDurationMs', 'number'],
  ['/recordingDurationMs', 'number'],
  ['/recordingUrl', 'string'],
  ['/transcript', 'object'],
  ['/transcript/utterances', 'object[]'],
  ['/transcript/speakerMapping', 'object'],
  ['/topics', 'object[]'],
  ['/namedEntities', 'object[]'],
  ['/namedEntities/0/summary', 'string'],
  ['/notes', 'object[]'],
  ['/notes/0/notes/0/categoryName', 'string'],
  ['/notes/0/notes/0/formatting', 'object'],
  ['/notes/0/notes/0/formatting/nestingLevel', 'number'],
  ['/analyticsSummary', 'object'],
  ...Object.entries(measures).flatMap(([measure, fields]): [string, Kind][] => [
    [`/analyticsSummary/${measure}`, 'object'],
    ...fields.map((field): [string, Kind] => [`/analyticsSummary/${measure}/*/${field}`, 'number']),
  ]),
];

/** The JSON Pointer of what was refused, or the part that was left out; undefined when all was read. */
function unread(value: unknown): string | undefined {
  const reading = readSession(value);
  return 'fault' in reading ? reading.fault : reading.leftOut[0];
}

/** How `unread` names a place: the part that it belongs to, if that can be left out. */
function named(pointer: string, inItem = ''): string {
  const [, part = ''] = pointer.split('/');
  return OPTIONAL.some(([optional]) => optional === `/${part}`) ? part : `${pointer}${inItem}`;
}

it('reads every field of a Session, and keeps those that the spec does not name', () => {
  expect(readSession(whole())).toEqual({ session: whole(), leftOut: [] });
  expect(unread({ ...whole(), mood: { of: 'the day' } })).toBeUndefined();
});

it.each(REQUIRED)('%s is required', (pointer) => {
  for (const value of [undefined, null]) expect(unread(changed(pointer, value))).toBe(named(pointer));
});

it.each(OPTIONAL)('%s is optional', (pointer) => {
  for (const value of [undefined, null]) expect(unread(changed(pointer, value))).toBeUndefined();
});

it.each([...REQUIRED, ...OPTIONAL])('%s is a %s', (pointer, kind) => {
  for (const value of WRONG[kind]) {
    const inItem = Array.isArray(value) && value.length > 0 ? '/0' : '';
    expect(unread(changed(pointer, value))).toBe(named(pointer, inItem));
  }
});

it.each(OPTIONAL)('an invalid %s leaves out only its field', (pointer, kind) => {
  const [, part = ''] = pointer.split('/');
  const { [part]: _left, ...rest } = whole() as unknown as Record<string, unknown>;
  for (const value of WRONG[kind]) {
    expect(readSession(changed(pointer, value))).toMatchObject({ session: rest, leftOut: [part] });
  }
});

it('leaves out an unreadable document individually, and marks the notes as incomplete', () => {
  const [document] = whole().notes ?? [];
  const notes = [{ sessionDocumentId: 'd-0', noteTemplateId: 't-0', notes: 'none' }, document];
  expect(readSession({ ...whole(), notes })).toEqual({
    session: { ...whole(), notes: [document], notesIncomplete: true },
    leftOut: ['notes'],
  });
});

it.each(['/sessionId', '/providerUserId', '/notes/0/sessionDocumentId', '/notes/0/noteTemplateId'])(
  '%s must not be blank',
  (pointer) => {
    expect(unread(changed(pointer, ' '))).toBe(named(pointer));
  },
);

it.each(['InProgress', 'Processing', 'Done', 'Error'])('state may be %s', (state) => {
  expect(unread(changed('/state', state))).toBeUndefined();
});

it.each(['', 'done', 'Paused'])('state may not be %j', (state) => {
  expect(unread(changed('/state', state))).toBe('/state');
});

it('speakerMapping may contain a user several times', () => {
  expect(unread(changed('/transcript/speakerMapping', { A: USER, B: USER }))).toBeUndefined();
  expect(unread(changed('/transcript/speakerMapping', { Jane: 7 }))).toBe('transcript');
  expect(unread(changed('/transcript/speakerMapping', { constructor: 7 }))).toBe('transcript');
});

it('a measure has an object for each user', () => {
  expect(unread(changed('/analyticsSummary/sentiment', { [USER]: 0.5 }))).toBe('analyticsSummary');
});

it('stops reading a list at its first invalid item', () => {
  const topics = Array.from({ length: 1_000_000 }, () => 0);
  const before = process.memoryUsage().heapUsed;
  expect(unread({ ...whole(), topics, noteTemplateIds: topics })).toBe('/noteTemplateIds/0');
  expect(unread({ ...whole(), topics })).toBe('topics');
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000);
});
