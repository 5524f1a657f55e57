import type { SessionEventType } from '../../platform/contract/wire-types.js';
import {
  awaitedAfterEvent,
  type EventView,
  isOwnState,
  requestState,
  type SessionRow,
  shownAfterEvent,
  stateSource,
} from './session-row.js';

const AT = new Date('2026-03-01T12:00:00Z');

test.each([
  [{ state: 'Requested', sessionId: null, abandoned: false }, 'Requested'],
  [{ state: 'Unknown', sessionId: null, abandoned: true }, 'Abandoned'],
  [{ state: 'Processing', sessionId: 's-1', abandoned: false }, 'Settled'],
])('a request with the row %j is shown as %s', (row, state) => {
  expect(requestState(row)).toBe(state);
});

test.each(['Requested', 'Unknown', 'Rejected'])('the state %s is of this service', (state) => {
  expect(isOwnState(state)).toBe(true);
  expect(stateSource({ state, fetchedAt: AT, stateFromEvents: false })).toBeNull();
});

test('a state is of the platform after a fetch, unless a later event changed it', () => {
  expect(stateSource({ state: 'Done', fetchedAt: AT, stateFromEvents: false })).toBe('platform');
  expect(stateSource({ state: 'Done', fetchedAt: AT, stateFromEvents: true })).toBe('events');
  expect(stateSource({ state: 'Done', fetchedAt: null, stateFromEvents: false })).toBe('events');
});

describe('the awaited notes after an event', () => {
  const awaitedAfter = (awaited: number, type: string, aiNotesEnabled: boolean | null = true) => {
    const eventType = `SESSION_${type}` as SessionEventType;
    return awaitedAfterEvent(awaited, { eventType, sessionId: 's-1', providerUserId: 'p-1', aiNotesEnabled });
  };

  test('are one more for each completed template, up to 1,000', () => {
    expect(awaitedAfter(0, 'PROCESSING_NOTES_COMPLETED')).toBe(1);
    expect(awaitedAfter(1, 'PROCESSING_NOTES_COMPLETED', null)).toBe(2);
    expect(awaitedAfter(1_000, 'PROCESSING_NOTES_COMPLETED')).toBe(1_000);
  });

  test('are at least one after the session is completed', () => {
    expect(awaitedAfter(0, 'PROCESSING_COMPLETED', null)).toBe(1);
    expect(awaitedAfter(2, 'PROCESSING_COMPLETED')).toBe(2);
  });

  test('are none if the session failed or has no AI notes', () => {
    expect(awaitedAfter(2, 'PROCESSING_FAILED')).toBe(0);
    expect(awaitedAfter(2, 'PROCESSING_COMPLETED', false)).toBe(0);
    expect(awaitedAfter(2, 'PROCESSING_NOTES_COMPLETED', false)).toBe(0);
  });

  test.each(['CREATED', 'PROCESSING_STARTED'])('are unchanged by %s', (type) => {
    expect(awaitedAfter(2, type, false)).toBe(2);
  });
});

describe('a session after an event', () => {
  const row = {
    fetchedAt: null,
    state: 'Requested',
    providerUserId: 'p-1',
    partnerAppointmentId: 'a-1',
  } as SessionRow;
  const fetched: SessionRow = { ...row, fetchedAt: AT, state: 'Processing' };
  const view = (eventState: EventView['eventState'], more: Partial<EventView> = {}): EventView => ({
    eventState,
    eventProviderUserId: null,
    eventAppointmentId: null,
    aiNotesEnabled: null,
    aiNotesStarted: false,
    aiNotesFinal: false,
    ...more,
  });
  const shown = (of: SessionRow, events: EventView, eventType?: SessionEventType, canFetch = false) =>
    shownAfterEvent(of, events, { eventType, canFetch });

  test('shows its events until it is fetched', () => {
    const events = view('Done', { eventProviderUserId: 'p-2', eventAppointmentId: 'a-2' });
    expect(shown(row, events)).toEqual({ state: 'Done', providerUserId: 'p-2', partnerAppointmentId: 'a-2' });
    expect(shown(fetched, events)).toEqual({
      state: 'Processing',
      providerUserId: 'p-1',
      partnerAppointmentId: 'a-1',
    });
  });

  test('keeps a known provider and appointment that no event names', () => {
    const events = view('Done', { eventAppointmentId: 'notebridge:1' });
    expect(shown(row, events)).toMatchObject({ providerUserId: 'p-1', partnerAppointmentId: 'a-1' });
  });

  test('is Processing without an event and a fetch, because the processing API named it', () => {
    expect(shown(row, view(null)).state).toBe('Processing');
  });

  test.each([
    ['SESSION_PROCESSING_NOTES_COMPLETED', 'Done'],
    ['SESSION_PROCESSING_COMPLETED', 'Done'],
    ['SESSION_PROCESSING_FAILED', 'Done'],
    ['SESSION_PROCESSING_STARTED', 'Processing'],
    [undefined, 'Processing'],
  ] as const)('that cannot be fetched again is then, after %s, shown as %s', (eventType, state) => {
    expect(shown(fetched, view('Done'), eventType).state).toBe(state);
    expect(shown(fetched, view('Done'), eventType, true).state).toBe('Processing');
  });

  test('never returns to an earlier state, nor leaves one that only the platform knows', () => {
    const failed = 'SESSION_PROCESSING_FAILED';
    expect(shown({ ...fetched, state: 'Done' }, view('Error'), failed).state).toBe('Done');
    expect(shown({ ...fetched, state: 'Archived' }, view('Error'), failed).state).toBe('Archived');
    expect(shown(fetched, view(null), failed).state).toBe('Processing');
  });
});
