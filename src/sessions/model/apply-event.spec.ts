import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { SESSION_EVENT_TYPES } from '../../platform/contract/wire-types.js';
import { applyEvent, endByEvents, type Heard, type Mention } from './apply-event.js';
import type { SessionRow } from './session-row.js';
import { at, event, fetched, HOUR, heard, MINUTE, NOW, session } from './session-row.spec-support.js';

const afterEvent = (row: SessionRow, of: Mention, how: Partial<Heard> = {}): SessionRow => ({
  ...row,
  ...applyEvent(row, of, heard(how)),
});

const merged = (events: readonly Mention[], row = session(), how: Partial<Heard> = {}): SessionRow =>
  events.reduce((merging, of) => afterEvent(merging, of, how), row);

/** A row without what depends on how often and when events arrived. */
function settled(row: SessionRow): Partial<SessionRow> {
  const { changes: _changes, lastEventAt: _lastEventAt, updatedAt: _updatedAt, publishEndBy, ...rest } = row;
  return { ...rest, publishEndBy: publishEndBy && NOW };
}

const NOTES: Mention = { eventType: 'PROCESSING', announcesNotes: true };

/** The events of a session with AI notes, two templates and one regeneration (spec, Event sequences). */
const HISTORY = [
  event('CREATED', null, 'a-1'),
  event('PROCESSING_STARTED', false, 'a-1'),
  event('PROCESSING_NOTES_COMPLETED', true, 'a-1'),
  event('PROCESSING_NOTES_COMPLETED', true, 'a-1'),
  event('PROCESSING_FAILED', true),
  event('PROCESSING_COMPLETED', true, 'a-1'),
];

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries()) {
    for (const rest of permutations(items.filter((_, other) => other !== index))) yield [item, ...rest];
  }
}

const anyMention: fc.Arbitrary<Mention> = fc.oneof(
  { weight: 5, arbitrary: anyEvent() },
  { weight: 1, arbitrary: fc.record({ eventType: fc.constant('PROCESSING'), announcesNotes: fc.boolean() }) },
);

function anyEvent(): fc.Arbitrary<Mention> {
  return fc.record({
    eventType: fc.constantFrom(...SESSION_EVENT_TYPES),
    sessionId: fc.constant('s-1'),
    providerUserId: fc.constantFrom('p-1', 'p-2'),
    partnerAppointmentId: fc.constantFrom(undefined, null, 'a-1', 'a-2'),
    aiNotesEnabled: fc.constantFrom(true, false, null),
  });
}

describe('the events of a session', () => {
  test('end in the same row in every order of a real history', () => {
    const expected = settled(merged(HISTORY));
    for (const order of permutations(HISTORY)) expect(settled(merged(order))).toEqual(expected);
  });

  test.each([true, false])('end in the same row in any order and repetition (fetched: %p)', (isFetched) => {
    const row = isFetched ? fetched('Processing') : session();
    fc.assert(
      fc.property(
        fc.array(anyMention, { maxLength: 25 }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        fc.boolean(),
        (events, chance, canFetch) => {
          const dice = chance[Symbol.iterator]();
          const first = new Set<Mention>();
          const shuffled = [...events, ...events.filter(() => dice.next().value < 0.5)]
            .map((of) => ({ of, place: dice.next().value }))
            .sort((left, right) => left.place - right.place)
            .map(({ of }) => {
              const news = first.has(of) ? 0 : 1;
              first.add(of);
              return { of, news };
            });
          const repeated = shuffled.reduce((merging, { of, news }) => afterEvent(merging, of, { news, canFetch }), row);
          expect(settled(repeated)).toEqual(settled(merged(events, row, { canFetch })));
        },
      ),
      propertyRuns(),
    );
  });

  test('raise the changes by each receipt, and by one for a replay', () => {
    expect(afterEvent(session(), event('CREATED'), { news: 3 }).changes).toBe(3);
    expect(afterEvent(session(), event('CREATED'), { news: 0 }).changes).toBe(1);
  });

  test('begin the rechecks again, and keep the time of the newest event', () => {
    const row = fetched('Done', { rechecks: 4, lastEventAt: at(-MINUTE) });
    expect(afterEvent(row, event('CREATED'), { since: at(-HOUR) })).toMatchObject({
      ...{ rechecks: 0, lastEventAt: at(-MINUTE), urgent: true },
    });
    expect(afterEvent(row, event('CREATED')).lastEventAt).toEqual(NOW);
  });
});

describe('the state by events', () => {
  test('is Done over Error, and Error over all others, in either order', () => {
    const [failed, started, completed] = [
      event('PROCESSING_FAILED'),
      event('PROCESSING_STARTED'),
      event('PROCESSING_COMPLETED'),
    ] as const;
    for (const order of permutations([failed, started])) expect(merged(order).eventState).toBe('Error');
    for (const order of permutations([failed, completed])) expect(merged(order).eventState).toBe('Done');
    expect(merged([completed, event('CREATED')]).eventState).toBe('Done');
  });

  test('is shown until an answer is, and then only where sessions cannot be fetched', () => {
    const of = event('PROCESSING_COMPLETED');
    expect(afterEvent(session(), of)).toMatchObject({ state: 'Done', stateFrom: 'events' });
    expect(afterEvent(fetched('Processing'), of)).toMatchObject({ state: 'Processing', stateFrom: 'platform' });
    const row = afterEvent(fetched('Processing'), of, { canFetch: false });
    expect(row).toMatchObject({ state: 'Done', stateFrom: 'events' });
  });

  test('never shows an earlier state, nor leaves one that only the platform knows', () => {
    const shown = (state: string, of: Mention) => afterEvent(fetched(state), of, { canFetch: false }).state;
    expect(shown('Done', event('PROCESSING_FAILED'))).toBe('Done');
    expect(shown('Archived', event('PROCESSING_FAILED'))).toBe('Archived');
    expect(shown('Processing', NOTES)).toBe('Processing');
  });

  test('is not changed by the processing API', () => {
    expect(afterEvent(session(), NOTES)).toMatchObject({
      ...{ eventState: null, state: 'Processing', notesEvents: 0, processingNotes: 1 },
    });
    expect(afterEvent(session(), { eventType: 'PROCESSING', announcesNotes: false }).processingNotes).toBe(0);
  });
});

describe('aiNotesEnabled', () => {
  const known = (...events: Mention[]) => merged(events).aiNotesEnabled;

  test('is kept by an event that does not tell it', () => {
    expect(known(event('CREATED', true), event('PROCESSING_STARTED', null))).toBe(true);
    expect(known(event('CREATED', false), event('PROCESSING_COMPLETED', null))).toBe(false);
    expect(merged([event('PROCESSING_COMPLETED', null), event('CREATED', true)])).toMatchObject({
      ...{ aiNotesEnabled: true, aiNotesRank: 0 },
    });
  });

  test.each([true, false])('%p of a final event is kept, in either order with a provisional one', (on) => {
    for (const order of permutations([event('PROCESSING_COMPLETED', on), event('PROCESSING_STARTED', !on)]))
      expect(known(...order)).toBe(on);
  });

  test.each([true, false])('%p on STARTED overrides the opposite on CREATED, in either order', (on) => {
    for (const order of permutations([event('CREATED', !on), event('PROCESSING_STARTED', on)]))
      expect(known(...order)).toBe(on);
  });
});

describe('the announced notes', () => {
  const events = (of: Mention, news = 1) => {
    const after = afterEvent(fetched('Processing', { notesEvents: 2, processingNotes: 2 }), of, { news });
    return of === NOTES ? after.processingNotes : after.notesEvents;
  };

  test('are one more for each receipt of an event, at most 20 at once, and none for a replay', () => {
    const of = event('PROCESSING_NOTES_COMPLETED', null);
    expect([of, NOTES].map((each) => events(each))).toEqual([3, 3]);
    expect([0, 3, 500].map((news) => events(of, news))).toEqual([2, 5, 22]);
  });

  test('are not more after any other event, or without AI notes', () => {
    const names = ['CREATED', 'PROCESSING_STARTED', 'PROCESSING_COMPLETED', 'PROCESSING_FAILED'] as const;
    expect(names.map((name) => events(event(name)))).toEqual([2, 2, 2, 2]);
    expect(events(event('PROCESSING_NOTES_COMPLETED', false))).toBe(2);
  });
});

describe('the provider and the appointment', () => {
  test('are the greatest of the events, until an answer has told them', () => {
    const other = { ...event('CREATED'), providerUserId: 'p-2' };
    for (const order of permutations([event('CREATED', null, 'a-1'), event('CREATED', null, 'a-2'), other]))
      expect(merged(order)).toMatchObject({ providerUserId: 'p-2', partnerAppointmentId: 'a-2' });
    const row = fetched('Processing', { providerUserId: 'p-1', partnerAppointmentId: 'a-1' });
    expect(afterEvent(row, { ...other, partnerAppointmentId: 'a-2' })).toMatchObject({
      ...{ providerUserId: 'p-1', partnerAppointmentId: 'a-1', eventAppointmentId: 'a-2' },
    });
  });

  test('of the request stay if the event has only an appointment of this service', () => {
    const row = session({ partnerAppointmentId: 'a-1' });
    expect(afterEvent(row, event('CREATED', null, 'notebridge:1')).partnerAppointmentId).toBe('a-1');
    expect(afterEvent(row, event('CREATED', null)).partnerAppointmentId).toBe('a-1');
  });
});

describe('the wait after a fault', () => {
  test.each(['gone', 'maybe-gone'])('ends if the session was not found (%s)', (fault) => {
    expect(afterEvent(fetched('Processing', { fault, retryAt: at(HOUR) }), event('CREATED')).retryAt).toBeNull();
  });

  test('goes on after another fault', () => {
    const row = fetched('Processing', { fault: 'platform-fault', retryAt: at(HOUR) });
    expect(afterEvent(row, event('CREATED')).retryAt).toEqual(at(HOUR));
  });
});

describe('an end by events', () => {
  const [completed, failed] = [event('PROCESSING_COMPLETED'), event('PROCESSING_FAILED')] as const;

  test('waits ten minutes for an answer, once', () => {
    const row = afterEvent(session(), failed);
    expect(row.publishEndBy).toEqual(at(10 * MINUTE));
    expect(afterEvent(row, completed, { now: at(MINUTE) }).publishEndBy).toEqual(at(10 * MINUTE));
    expect(afterEvent(session(), event('PROCESSING_NOTES_COMPLETED')).publishEndBy).toBeNull();
  });

  test('waits again if COMPLETED follows a failure that was published', () => {
    const row = fetched('Error', { eventState: 'Error', publishedEnd: 'Error' });
    expect(afterEvent(row, completed).publishEndBy).toEqual(at(10 * MINUTE));
    expect(afterEvent(row, failed).publishEndBy).toBeNull();
  });

  test('does not wait if it was published, or is repeated after a reprocessing failed', () => {
    expect(afterEvent(fetched('Done', { publishedEnd: 'Done' }), completed).publishEndBy).toBeNull();
    const row = fetched('Error', { eventState: 'Done', publishedEnd: 'Error' });
    expect(afterEvent(row, completed, { news: 0 }).publishEndBy).toBeNull();
  });

  test('is shown after its wait, unless an answer shows an end that it does not override', () => {
    const shown = (state: string, eventState: string | null) =>
      endByEvents(fetched(state, { eventState }), NOW).state ?? state;
    expect(shown('Processing', 'Done')).toBe('Done');
    expect(shown('Processing', 'Error')).toBe('Error');
    expect(shown('Error', 'Done')).toBe('Done');
    expect(shown('Done', 'Error')).toBe('Done');
    expect(shown('Processing', 'Processing')).toBe('Processing');
  });
});
