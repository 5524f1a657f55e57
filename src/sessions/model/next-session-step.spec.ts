import { nextSessionStep } from './next-session-step.js';

const due = new Date('2026-01-31T03:10:00Z');
const row = {
  state: 'Processing',
  dueAt: due,
  fault: null,
  failures: 0,
  wantedGeneration: 1,
  fetchedGeneration: 1,
  notesAwaited: 0,
};

test.each([
  [{ state: 'Unknown', dueAt: null }, 'none', /choose one of the choices/],
  [{ state: 'Rejected', dueAt: null }, 'none', /rejected the request/],
  [{ state: 'Done', dueAt: null }, 'none', /everything announced was fetched/],
  [{ state: 'Done', dueAt: null, fault: 'gone' }, 'none', /failed \(gone\); a new event or refresh/],
  [{ state: 'Requested' }, 'createSession', /it was requested/],
  [{ state: 'Requested', failures: 2, fault: 'platform-address' }, 'createSession', /\(platform-address\), 2 in a row/],
  [{ failures: 3, fault: 'unreadable-answer' }, 'getSession', /\(unreadable-answer\), 3 in a row/],
  [{ failures: 1, fault: 'maybe-gone' }, 'getSession', /did not find it/],
  [{ wantedGeneration: 2 }, 'getSession', /an event, an update or a refresh/],
  [{ notesAwaited: 1 }, 'getSession', /notes that an event announced/],
  [{}, 'getSession', /has not ended/],
])('%j leads to %s', (change, what, why) => {
  const step = nextSessionStep({ ...row, ...change });
  expect(step).toEqual({ what, why: expect.stringMatching(why), notBefore: what === 'none' ? null : due });
});
