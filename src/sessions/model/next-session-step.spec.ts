import { nextSessionStep } from './next-session-step.js';
import { at, fetched, HOUR, MINUTE, NOW, POLICY, session } from './session-row.spec-support.js';

const due = at(HOUR);
const request = session({ sessionId: null, state: 'Requested', stateFrom: null, dueAt: due });
const failing = { fault: 'unreadable-answer', failures: 3, retryAt: due, changes: 2 };

test.each([
  [{ ...request, state: 'Unknown' }, 'none', /choose one of the choices/],
  [{ ...request, state: 'Rejected' }, 'none', /rejected the request/],
  [{ ...request, state: 'Merged' }, 'none', /another row/],
  [request, 'createSession', /it was requested/],
  [{ ...request, fault: 'platform-address', failures: 2 }, 'createSession', /failed \(platform-address\), 2 in a row/],
  [fetched('Done'), 'none', /everything announced was fetched/],
  [fetched('Done', { publishEndBy: at(MINUTE) }), 'none', /its end waits/],
  [fetched('Done', failing), 'getSession', /failed \(unreadable-answer\), 3 in a row/],
  [fetched('Done', { ...failing, publishEndBy: at(MINUTE) }), 'getSession', /unreadable-answer/],
  [session({ notFoundAt: NOW, fault: 'gone', retryAt: due }), 'getSession', /did not find it/],
  [session({ notFoundAt: NOW, fault: 'gone' }), 'none', /has not found it for seven days/],
  [fetched('Done', { changes: 2, retryAt: due }), 'getSession', /the last call failed/],
  [fetched('Done', { updateUntil: due }), 'getSession', /an update may take effect/],
  [fetched('Done', { notesEvents: 1, rechecks: 5, fetchedAt: NOW }), 'getSession', /notes that an event announced/],
  [fetched('InProgress', { createdAt: at(-4 * HOUR), fetchedAt: NOW }), 'getSession', /has not ended/],
])('%#. the next step says what is called, when and why', (row, what, why) => {
  const step = nextSessionStep(row, NOW, POLICY, true);
  expect(step).toEqual({ what, why: expect.stringMatching(why), notBefore: what === 'none' ? null : due });
});

test('a change leads to a call at once', () => {
  expect(nextSessionStep(fetched('Done', { changes: 2 }), NOW, POLICY, true)).toMatchObject({
    ...{ what: 'getSession', why: expect.stringMatching(/an event, an update or a refresh/), notBefore: NOW },
  });
});
