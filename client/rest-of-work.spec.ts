import { REST_OF, type Rest, type Waited } from './rest-of-work.js';

const nameOf = (rest: Rest) => (typeof rest === 'object' ? `${rest.state} ${rest.code}` : rest);
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
      ...{ aiNotesEnabled: null, aiNotesFinal: false },
      ...members,
    } as Waited['session']),
  );

test.each([
  [{}, 'going-on'],
  [{ state: 'Requested' }, 'going-on'],
  [{ state: 'Done' }, 'going-on'],
  [{ state: 'Processing', notesRevision: 1 }, 'good'],
  [{ state: 'Done', aiNotesEnabled: false }, 'going-on'],
  [{ state: 'Done', aiNotesEnabled: false, aiNotesFinal: true }, 'good'],
  [{ state: 'Done', aiNotesEnabled: true, aiNotesFinal: true }, 'going-on'],
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

test.each([
  [{ state: 'Requested' }, 'going-on'],
  [{ state: 'Submitted' }, 'going-on'],
  [{ state: 'Completed', result: null }, 'going-on'],
  [{ state: 'Completed', result: {} }, 'good'],
  [{ state: 'Completed' }, 'good'],
  [
    { state: 'Completed', result: null, error: { code: 'result-unreadable', message: '' } },
    'Completed result-unreadable',
  ],
  [{ state: 'Failed', error: { code: 'failed', message: '' } }, 'Failed failed'],
  [{ state: 'Unknown' }, 'Unknown null'],
  [{ state: 'Rejected' }, 'Rejected null'],
  [{ state: 'Abandoned' }, 'Abandoned null'],
])('a compliance job with %j: %s', (members, rest) => {
  expect(nameOf(REST_OF['compliance-job']({ error: null, ...members } as Waited['compliance-job']))).toBe(rest);
});
