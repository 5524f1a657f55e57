import { plainCode, shownError, withoutMessage } from './session-facts.js';
import { hasEnded, isOwnState, requestState, shownAppointment } from './session-row.js';

test.each([
  [{ state: 'Requested', sessionId: null, abandoned: false }, 'Requested'],
  [{ state: 'Rejected', sessionId: null, abandoned: false }, 'Rejected'],
  [{ state: 'Unknown', sessionId: null, abandoned: true }, 'Abandoned'],
  [{ state: 'Processing', sessionId: 's-1', abandoned: false }, 'Settled'],
  [{ state: 'Merged', sessionId: null, abandoned: false }, 'Settled'],
])('a request with the row %j is shown as %s', (row, state) => {
  expect(requestState(row)).toBe(state);
});

test('the states of a request are of this service, and all others of the platform', () => {
  const states = ['Requested', 'Unknown', 'Rejected', 'Merged', 'InProgress', 'Done', 'Archived'];
  expect(states.map(isOwnState)).toEqual([true, true, true, true, false, false, false]);
});

test('a session has ended if it is Done or failed', () => {
  expect(['Done', 'Error', 'Processing', 'Archived', null].map(hasEnded)).toEqual([true, true, false, false, false]);
});

test('an appointment id of this service is shown as absent', () => {
  const ids = ['a-1', 'notebridge:1', null, undefined];
  expect(ids.map(shownAppointment)).toEqual(['a-1', null, null, null]);
});

describe('the code of an error', () => {
  test.each(['low-content-transcript', 'E_1.2', 'a'.repeat(64)])('%s is shown unchanged', (code) => {
    expect(plainCode(code)).toBe(code);
    expect(shownError({ code, message: 'b' })).toEqual({ code, message: 'b' });
  });

  test.each(['Too little audio of Jane Doe', 'a'.repeat(65), '', 'ä'])(
    '%j is no code, and joins the message',
    (code) => {
      expect(shownError({ code, message: 'b' })).toEqual({
        code: 'platform-error',
        message: code ? `${code}: b` : 'b',
      });
    },
  );

  test('stays without its message', () => {
    const facts = { date: null, sessionCreatedAt: null, sessionDurationMs: null, recordingDurationMs: null };
    expect(withoutMessage({ ...facts, error: { code: 'a b', message: 'c' } }).error).toEqual({
      ...{ code: 'platform-error', message: '' },
    });
    expect(withoutMessage({ ...facts, error: null }).error).toBeNull();
  });
});
