import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { factsAfter, fetchedInsights, fetchedNotes } from './apply-fetch.js';

/** An answer with only the required fields of a Session (spec, Session). */
const lean = (more: Partial<SessionAnswer> = {}): SessionAnswer => ({
  sessionId: 's-1',
  noteTemplateIds: ['t-1'],
  providerUserId: 'p-1',
  clientUserIds: ['c-1'],
  state: 'Done',
  incomplete: [],
  ...more,
});
const KNOWN = {
  date: '2026-01-31T08:00:00Z',
  sessionCreatedAt: '2026-01-31T08:00:01Z',
  sessionDurationMs: '3000000',
  recordingDurationMs: '2900000',
  error: null,
};
const PARTS = ['transcript', 'topics', 'namedEntities', 'analytics'] as const;

test.each(['Done', 'Processing', 'Error'] as const)(
  'an answer in the state %s says nothing about omitted fields',
  (state) => {
    expect(fetchedNotes(lean({ state }))).toBeUndefined();
    expect(PARTS.filter((part) => fetchedInsights(lean({ state }))[part] !== undefined)).toEqual([]);
    expect(factsAfter(lean({ state }), KNOWN)).toEqual(KNOWN);
  },
);

test('null and an empty list mean "none" for a session that is Done', () => {
  const none = { notes: null, transcript: null, topics: null, namedEntities: null, analyticsSummary: null };
  expect(fetchedNotes(lean(none))).toEqual({ documents: [], complete: true });
  expect(fetchedNotes(lean({ notes: [] }))).toEqual({ documents: [], complete: true });
  expect(PARTS.map((part) => fetchedInsights(lean(none))[part])).toEqual([null, null, null, null]);
  expect(fetchedInsights(lean({ topics: [], namedEntities: [] }))).toMatchObject({ topics: [], namedEntities: [] });
});

test('null means "not ready yet" for a session that is Processing', () => {
  const none = { state: 'Processing', notes: null, transcript: null } as const;
  expect(fetchedNotes(lean(none))).toBeUndefined();
  expect(fetchedInsights(lean(none)).transcript).toBeUndefined();
});

test('parts of a session that is Processing count, but its notes are not complete', () => {
  const some = lean({ state: 'Processing', notes: [], topics: [] });
  expect(fetchedNotes(some)).toEqual({ documents: [], complete: false });
  expect(fetchedInsights(some).topics).toEqual([]);
});

test('null clears a fact, and durations are rounded to milliseconds', () => {
  const said = { date: null, sessionDurationMs: null, recordingDurationMs: 10.6 };
  expect(factsAfter(lean(said), KNOWN)).toEqual({
    ...KNOWN,
    date: null,
    sessionDurationMs: null,
    recordingDurationMs: '11',
  });
});

test('keeps an error that a failed session omits, and clears it in any other state', () => {
  const [known, error] = ['unknown', 'low-content-transcript'].map((code) => ({ code, message: 'Too little audio.' }));
  const errorAfter = (answer: Partial<SessionAnswer>) =>
    factsAfter(lean(answer), { ...KNOWN, error: known ?? null }).error;
  expect(errorAfter({ state: 'Error' })).toEqual(known);
  expect(errorAfter({ state: 'Error', error: null })).toBeNull();
  expect(errorAfter({ state: 'Error', error })).toEqual(error);
  expect(errorAfter({ state: 'Done', error })).toBeNull();
  expect(errorAfter({ state: 'Processing' })).toBeNull();
});

test('notes with an unreadable document are not complete', () => {
  expect(fetchedNotes(lean({ notes: [], notesIncomplete: true }))).toEqual({ documents: [], complete: false });
});
