import { REST_OF, type Rest, type Waited } from './rest-of-work.js';

const nameOf = ({ isGood, bad }: Rest) =>
  [isGood && 'good', bad && `${bad.state} ${bad.code}`].filter(Boolean).join(' and ') || 'going-on';
const FAILED = { code: 'email-taken', message: 'Another person has this email.', platformMessage: null };

test.each([
  ['pending', 'going-on'],
  ['waiting', 'going-on'],
  ['deleting', 'going-on'],
  ['synced', 'good'],
  ['deleted', 'good'],
  ['failed', 'failed email-taken'],
  ['needs-review', 'needs-review email-taken'],
] as const)('a %s person: %s', (state, rest) => {
  const person = { sync: { state, error: FAILED } } as Waited['client'];
  expect(nameOf(REST_OF.client(person))).toBe(rest);
});

const session = (members: Partial<Waited['session']>) =>
  nameOf(
    REST_OF.session({
      ...{ state: 'InProgress', error: null, goneAt: null, notesRevision: 0 },
      ...{ aiNotesEnabled: null, aiNotesFinal: false, incomplete: [] },
      ...members,
    } as Waited['session']),
  );

test.each([
  [{}, 'going-on'],
  [{ state: 'Requested' }, 'going-on'],
  [{ state: 'Done' }, 'going-on'],
  [{ state: 'Processing', notesRevision: 1 }, 'good'],
  [{ state: 'Error', notesRevision: 1, error: { code: 'failed', message: null } }, 'good and Error failed'],
  [{ state: 'Unknown', notesRevision: 1 }, 'good and Unknown null'],
  [{ state: 'Done', notesRevision: 1, goneAt: '2026-11-27T10:00:00Z' }, 'good and gone null'],
  [{ state: 'Done', aiNotesEnabled: false }, 'going-on'],
  [{ state: 'Done', aiNotesEnabled: false, aiNotesFinal: true }, 'good'],
  [{ state: 'Done', aiNotesEnabled: true, aiNotesFinal: true }, 'going-on'],
  [{ state: 'Done', aiNotesFinal: true, incomplete: ['notes'] }, 'Done notes-unreadable'],
  [{ state: 'Done', aiNotesFinal: true, incomplete: ['topics'] }, 'going-on'],
  [{ state: 'Done', aiNotesFinal: false, incomplete: ['notes'] }, 'going-on'],
  [{ state: 'Processing', aiNotesFinal: true, incomplete: ['notes'] }, 'going-on'],
  [{ state: 'Done', aiNotesFinal: true, incomplete: ['notes'], notesRevision: 1 }, 'good'],
  [{ state: 'Unknown' }, 'Unknown null'],
  [{ state: 'Error', error: { code: 'low-content-transcript', message: null } }, 'Error low-content-transcript'],
  [{ state: 'Rejected', error: { code: 'abandoned', message: null } }, 'Rejected abandoned'],
  [{ state: 'Done', goneAt: '2026-11-27T10:00:00Z' }, 'gone null'],
] as [Partial<Waited['session']>, string][])('a session with %j: %s', (members, rest) => {
  expect(session(members)).toBe(rest);
});

test.each([
  ['staging', 'going-on'],
  ['running', 'going-on'],
  ['needs-mapping', 'good'],
  ['planned', 'good'],
  ['paused', 'good'],
  ['completed', 'good'],
  ['cancelled', 'cancelled null'],
  ['failed', 'failed null'],
] as const)('a %s import: %s', (state, rest) => {
  expect(nameOf(REST_OF.import({ state } as Waited['import']))).toBe(rest);
});

const error = (code: string) => ({ code, message: '' });

test.each([
  [{ state: 'Requested' }, 'going-on'],
  [{ state: 'Requested', error: error('held') }, 'going-on'],
  [{ state: 'Requested', error: error('platform-unavailable') }, 'going-on'],
  [{ state: 'Submitted' }, 'going-on'],
  [{ state: 'Submitted', error: error('maybe-gone') }, 'going-on'],
  [{ state: 'Submitted', error: error('gone') }, 'Submitted gone'],
  [{ state: 'Completed', result: null }, 'going-on'],
  [{ state: 'Completed', result: null, error: error('unreadable-answer') }, 'going-on'],
  [{ state: 'Completed', result: null, error: error('result-unreadable') }, 'Completed result-unreadable'],
  [{ state: 'Completed', result: {} }, 'good'],
  [{ state: 'Completed' }, 'good'],
  [{ state: 'Completed', result: null, removedAt: '2026-01-01T00:00:00Z' }, 'good'],
  [{ state: 'Completed', result: null, unreadable: ['result'] }, 'Completed result-undecryptable'],
  [{ state: 'Completed', result: null, unreadable: ['files'] }, 'going-on'],
  [{ state: 'Completed', result: null, updatedAt: '2026-01-01T00:00:00Z' }, 'going-on'],
  [{ state: 'Completed', result: null, error: error('no-result') }, 'Completed no-result'],
  [{ state: 'Failed', error: error('failed') }, 'Failed failed'],
  [{ state: 'Unknown' }, 'Unknown null'],
  [{ state: 'Rejected' }, 'Rejected null'],
  [{ state: 'Abandoned' }, 'Abandoned null'],
])('a compliance job with %j: %s', (members, rest) => {
  const job = { error: null, removedAt: null, ...members } as Waited['compliance-job'];
  expect(nameOf(REST_OF['compliance-job'](job))).toBe(rest);
});
