import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { SESSION_EVENT_TYPES, type SessionEvent, type SessionEventType } from '../../platform/contract/wire-types.js';
import { applyEvent, type EventView } from './session-row.js';

/** A session without events. */
const NO_EVENTS: EventView = {
  eventState: null,
  eventProviderUserId: null,
  eventAppointmentId: null,
  aiNotesEnabled: null,
  aiNotesStarted: false,
  aiNotesFinal: false,
};

function event(eventType: SessionEventType, aiNotesEnabled: boolean | null, appointment?: string): SessionEvent {
  return { eventType, sessionId: 's-1', providerUserId: 'p-1', partnerAppointmentId: appointment, aiNotesEnabled };
}

/** The events of a session with AI notes, two templates and one regeneration (spec, Event sequences). */
const HISTORY = [
  event('SESSION_CREATED', null, 'a-1'),
  event('SESSION_PROCESSING_STARTED', false, 'a-1'),
  event('SESSION_PROCESSING_NOTES_COMPLETED', true, 'a-1'),
  event('SESSION_PROCESSING_NOTES_COMPLETED', true, 'a-1'),
  event('SESSION_PROCESSING_FAILED', true),
  event('SESSION_PROCESSING_COMPLETED', true, 'a-1'),
  event('SESSION_PROCESSING_NOTES_COMPLETED', true),
];

const merged = (events: readonly SessionEvent[], from: EventView = NO_EVENTS): EventView =>
  events.reduce(applyEvent, from);

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries()) {
    for (const rest of permutations(items.filter((_, other) => other !== index))) yield [item, ...rest];
  }
}

describe('the events of a session', () => {
  test.each([1, 2, 3, 4, 5, 6, 7])(
    'every permutation of %i events, with any event repeated, ends in the same state',
    (count) => {
      const events = HISTORY.slice(0, count);
      const expected = JSON.stringify(merged(events));
      const ends = (order: SessionEvent[]) => JSON.stringify(merged(order)) === expected;
      let tried = 0;
      for (const order of permutations(events)) {
        tried += 1;
        // Each event repeated before and after all others, and the whole history twice.
        const holds = events.every((repeated) => ends([repeated, ...order, repeated])) && ends([...order, ...order]);
        if (!ends(order) || !holds)
          throw new Error(`Another end: ${order.map(({ eventType }) => eventType).join(', ')}`);
      }
      expect(tried).toBe([1, 1, 2, 6, 24, 120, 720, 5040][count]);
    },
  );

  const anyEvent = fc.record({
    eventType: fc.constantFrom(...SESSION_EVENT_TYPES),
    sessionId: fc.constant('s-1'),
    providerUserId: fc.constantFrom('p-1', 'p-2'),
    partnerAppointmentId: fc.constantFrom(undefined, null, 'a-1', 'a-2'),
    aiNotesEnabled: fc.constantFrom(true, false, null),
  });

  test('any history ends in the same state in any order and with any repetition', () => {
    fc.assert(
      fc.property(
        fc.array(anyEvent, { maxLength: 40 }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (events, chance) => {
          const dice = chance[Symbol.iterator]();
          const shuffled = [...events, ...events.filter(() => dice.next().value < 0.5)]
            .map((item) => ({ item, place: dice.next().value }))
            .sort((left, right) => left.place - right.place)
            .map(({ item }) => item);
          expect(merged(shuffled)).toEqual(merged(events));
        },
      ),
      propertyRuns(),
    );
  });

  test('Done overrides Error, which overrides all other states', () => {
    const failed = event('SESSION_PROCESSING_FAILED', null);
    expect(merged([failed, event('SESSION_PROCESSING_STARTED', true)]).eventState).toBe('Error');
    expect(merged([event('SESSION_PROCESSING_COMPLETED', true), failed]).eventState).toBe('Done');
    expect(merged([event('SESSION_PROCESSING_COMPLETED', true), event('SESSION_CREATED', null)]).eventState).toBe(
      'Done',
    );
  });

  test('a late provisional aiNotesEnabled does not overwrite a final one', () => {
    const final = event('SESSION_PROCESSING_COMPLETED', false);
    const provisional = event('SESSION_PROCESSING_STARTED', true);
    expect(merged([final, provisional])).toMatchObject({ aiNotesEnabled: false, aiNotesFinal: true });
    expect(naive([final, provisional]).aiNotesEnabled).toBe(true);
  });

  test.each([true, false])('aiNotesEnabled %p on STARTED overrides the opposite on CREATED, in either order', (on) => {
    const created = event('SESSION_CREATED', !on);
    const started = event('SESSION_PROCESSING_STARTED', on);
    expect(merged([created, started])).toMatchObject({ aiNotesEnabled: on, aiNotesFinal: false });
    expect(merged([started, created])).toMatchObject({ aiNotesEnabled: on, aiNotesFinal: false });
  });

  test('null on STARTED keeps the value of CREATED', () => {
    const events = [event('SESSION_CREATED', true), event('SESSION_PROCESSING_STARTED', null)];
    expect(merged(events).aiNotesEnabled).toBe(true);
  });

  test('false on CREATED is kept, and null on it leaves aiNotesEnabled unknown', () => {
    expect(merged([event('SESSION_CREATED', false)]).aiNotesEnabled).toBe(false);
    expect(merged([event('SESSION_CREATED', null)])).toEqual({
      ...{ ...NO_EVENTS, eventState: 'InProgress' },
      eventProviderUserId: 'p-1',
    });
  });

  test('the greatest appointment and provider stay, in any order of the events', () => {
    const [first, second, none] = ['a-1', 'a-2', undefined].map((id) => event('SESSION_CREATED', null, id));
    const other = { ...event('SESSION_CREATED', null), providerUserId: 'p-2' };
    if (!first || !second || !none) throw new Error('an event is missing');
    for (const order of permutations([first, second, none, other])) {
      expect(merged(order)).toMatchObject({ eventAppointmentId: 'a-2', eventProviderUserId: 'p-2' });
    }
    expect(merged([none]).eventAppointmentId).toBeNull();
  });

  test('CREATED after COMPLETED does not reopen a session', () => {
    const late = [event('SESSION_PROCESSING_COMPLETED', true), event('SESSION_CREATED', null)];
    expect(merged(late).eventState).toBe('Done');
    expect(naive(late).eventState).toBe('InProgress');
  });

  test('null on a final event changes nothing', () => {
    const events = [event('SESSION_PROCESSING_COMPLETED', null), event('SESSION_CREATED', true)];
    expect(merged(events)).toMatchObject({ aiNotesEnabled: true, aiNotesFinal: false });
  });

  /** A wrong merge: the last event wins. */
  function naive(events: readonly SessionEvent[]): EventView {
    return merged(events.slice(-1));
  }
});
