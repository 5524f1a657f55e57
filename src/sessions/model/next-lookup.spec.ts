import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { Mention } from './apply-event.js';
import { nextLookup } from './next-lookup.js';
import type { SessionRow } from './session-row.js';
import { at, DAY, event, fetched, HOUR, MINUTE, NOW, POLICY, SECOND, session } from './session-row.spec-support.js';
import { type Look, Worker } from './session-worker.spec-support.js';

const next = (row: SessionRow, now = NOW) => nextLookup(row, now, POLICY);
const waitMs = (row: SessionRow) => {
  const { at: then } = next(row);
  return then && then.getTime() - NOW.getTime();
};
const ago = (ms: number) => at(-ms);

describe('the next lookup of a session', () => {
  test('is at once after a change, and in a burst a second after the last answer', () => {
    expect(waitMs(fetched('Done', { changes: 2 }))).toBe(0);
    expect(waitMs(fetched('Done', { changes: 2, fetchedAt: ago(200) }))).toBe(800);
    expect(waitMs(session({ changes: 1 }))).toBe(0);
  });

  test('is when an update without an answer can no longer take effect', () => {
    expect(waitMs(fetched('Done', { updateUntil: at(MINUTE) }))).toBe(MINUTE);
  });

  test.each([2, 10, 60, 600, 3_600])('is %i s after the last answer if announced notes are missing', (seconds) => {
    const rechecks = [2, 10, 60, 600, 3_600].indexOf(seconds) + 1;
    const row = fetched('Done', { notesEvents: 1, rechecks, fetchedAt: NOW });
    expect(waitMs(row)).toBe(seconds * SECOND);
    expect(waitMs({ ...row, notesFound: 1 })).toBeNull();
    expect(waitMs({ ...row, state: 'Error' })).toBeNull();
  });

  test('is soon, then after half the time since readers saw it change, if its end is expected', () => {
    const ending = { eventState: 'Done', notesFound: 1, fetchedAt: NOW };
    for (const row of [ending, { ...ending, eventState: 'Error' }, { fetchedAt: NOW, publishedEnd: 'Done' }]) {
      expect(waitMs(fetched('Processing', { ...row, updatedAt: NOW }))).toBe(3 * SECOND);
      expect(waitMs(fetched('Processing', { ...row, updatedAt: ago(20 * SECOND) }))).toBe(10 * SECOND);
      expect(waitMs(fetched('Processing', { ...row, updatedAt: ago(10 * DAY) }))).toBe(DAY);
    }
  });

  test('is soon after only the events showed its end', () => {
    const row = { eventState: 'Done', stateFrom: 'events', publishedEnd: 'Done', notesFound: 1 };
    expect(waitMs(fetched('Done', { ...row, fetchedAt: NOW, updatedAt: NOW }))).toBe(3 * SECOND);
    expect(waitMs(fetched('Done', { ...row, stateFrom: 'platform', fetchedAt: NOW, updatedAt: NOW }))).toBeNull();
  });

  test('is soon if it is processed again, regardless of its age', () => {
    const old = { publishedEnd: 'Done', createdAt: ago(90 * DAY), lastEventAt: ago(89 * DAY), fetchedAt: NOW };
    expect(waitMs(fetched('Processing', { ...old, updatedAt: NOW }))).toBe(3 * SECOND);
  });

  test('is soon while the answer is older than a COMPLETED that awaits one', () => {
    const row = { eventState: 'Done', publishedEnd: 'Error', fetchedAt: NOW, updatedAt: NOW };
    expect(waitMs(fetched('Error', { ...row, publishEndBy: at(MINUTE) }))).toBe(3 * SECOND);
    expect(waitMs(fetched('Error', row))).toBeNull();
  });

  test('is at the age of the setting, then after its interval, then the later the older it is', () => {
    expect(waitMs(session({ createdAt: ago(MINUTE), updatedAt: ago(MINUTE) }))).toBe(14 * MINUTE);
    const aged = (ms: number) => waitMs(fetched('InProgress', { createdAt: ago(ms), fetchedAt: NOW, updatedAt: NOW }));
    expect([MINUTE, HOUR / 2, 8 * HOUR, 20 * DAY].map(aged)).toEqual([14 * MINUTE, 10 * MINUTE, 2 * HOUR, DAY]);
  });

  test('is never before the end of the wait after a fault', () => {
    const failing = { fault: 'platform-fault', failures: 2, retryAt: at(HOUR) };
    const row = fetched('Processing', { ...failing, changes: 2, notesEvents: 1, rechecks: 1 });
    expect(next(row)).toMatchObject({ at: at(HOUR), what: 'fetch', why: expect.stringContaining('2 in a row') });
  });

  test('is at the next try while the platform does not find it, and never once that is given up', () => {
    const gone = { notFoundAt: ago(DAY), fault: 'gone', failures: 9, fetchedChanges: 1, changes: 1 };
    expect(waitMs(session({ ...gone, retryAt: at(HOUR) }))).toBe(HOUR);
    expect(next(session(gone))).toMatchObject({ at: null, what: 'none', why: expect.stringMatching(/seven days/) });
    expect(waitMs(session({ ...gone, changes: 2 }))).toBe(0);
  });

  test('is never once it has not ended for thirty days, except after a change', () => {
    const row = fetched('Processing', { createdAt: ago(40 * DAY), updatedAt: ago(30 * DAY) });
    expect(next(row)).toMatchObject({ at: null, why: expect.stringMatching(/not ended for thirty days/) });
    expect(waitMs({ ...row, changes: 2 })).toBe(0);
  });

  test('is never once calls have failed for a day and readers saw no change for thirty', () => {
    const failing = { fault: 'unreadable-answer', failures: 100, retryAt: NOW, changes: 2 };
    const row = fetched('Done', { ...failing, updatedAt: ago(30 * DAY) });
    expect(next(row)).toMatchObject({ at: null, why: expect.stringMatching(/given up: .*unreadable-answer/) });
    expect(waitMs({ ...row, updatedAt: NOW })).toBe(0);
    expect(waitMs({ ...row, failures: 99 })).toBe(0);
  });

  test('publishes an end that has waited long enough, and fetches nothing before that for it', () => {
    expect(next(fetched('Done', { publishEndBy: at(MINUTE) }))).toMatchObject({ at: at(MINUTE), what: 'publish' });
    expect(next(fetched('Done', { publishEndBy: NOW, changes: 2 }))).toMatchObject({ at: NOW, what: 'publish' });
  });

  test('is never if everything announced was fetched', () => {
    expect(next(fetched('Done'))).toMatchObject({ at: null, what: 'none', why: 'everything announced was fetched' });
  });

  const anyDate = fc.option(fc.integer({ min: -60 * DAY, max: DAY }).map(at));
  const anyRow = fc.record({
    state: fc.constantFrom('InProgress', 'Processing', 'Done', 'Error', 'Archived'),
    stateFrom: fc.constantFrom('platform', 'events'),
    eventState: fc.constantFrom(null, 'Processing', 'Done', 'Error'),
    publishedEnd: fc.constantFrom(null, 'Done', 'Error'),
    ...{ changes: fc.nat(2), fetchedChanges: fc.nat(2), rechecks: fc.nat(5), failures: fc.nat(200) },
    ...{ notesEvents: fc.nat(2), notesFound: fc.nat(2), fetchedAt: anyDate, notFoundAt: anyDate, retryAt: anyDate },
    ...{ updateUntil: anyDate, publishEndBy: anyDate, updatedAt: anyDate.map((date) => date ?? NOW) },
  });

  test('that was decided stays due: it is not postponed later, nor given up', () => {
    fc.assert(
      fc.property(anyRow, fc.nat(40 * DAY), (fields, laterMs) => {
        const row = session({ createdAt: ago(60 * DAY), ...fields });
        const [first, later] = [next(row).at, next(row, at(laterMs)).at];
        if (first === null) expect(later).toBeNull();
        else expect(later !== null && (later <= first || later <= at(laterMs))).toBe(true);
      }),
      propertyRuns(),
    );
  });
});

describe('the lookups of a session', () => {
  const anyLook: fc.Arbitrary<Look> = fc.oneof(
    fc.constantFrom<Look>('fault', 'gone'),
    fc.record({ state: fc.constantFrom('InProgress', 'Processing', 'Archived', 'Error', 'Done'), notes: fc.nat(3) }),
  );
  const anyEvents = fc.array(
    fc.record({
      ms: fc.nat(2 * HOUR),
      of: fc.oneof(
        fc
          .tuple(
            fc.constantFrom(
              ...(['CREATED', 'PROCESSING_STARTED', 'PROCESSING_NOTES_COMPLETED'] as const),
              ...(['PROCESSING_COMPLETED', 'PROCESSING_FAILED'] as const),
            ),
            fc.constantFrom(true, false, null),
          )
          .map(([name, on]): Mention => event(name, on)),
        fc.constant<Mention>({ eventType: 'PROCESSING', announcesNotes: true }),
      ),
    }),
    { minLength: 1, maxLength: 8 },
  );

  test('are at most four if it is ordinary, in any order of its events', () => {
    const order = fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 });
    const pauses = fc.array(fc.nat(3 * MINUTE), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(order, pauses, fc.nat(3 * SECOND), fc.boolean(), (places, waits, latencyMs, hasNotes) => {
        // The platform has ended before the events that say so arrive.
        const happened = Math.max(...places.map((place) => (place < 2 ? place : 0)));
        const history = [
          event('CREATED', null),
          event('PROCESSING_STARTED'),
          event('PROCESSING_NOTES_COMPLETED', hasNotes),
          event('PROCESSING_COMPLETED', hasNotes),
        ];
        let reached = happened - happened;
        const states = ['InProgress', 'Processing', 'Processing', 'Done'];
        const worker = new Worker(
          () => ({ state: states[reached] as string, notes: hasNotes && reached > 1 ? 1 : 0 }),
          { latencyMs },
        );
        let ms = 0;
        for (const [index, place] of places.entries()) {
          ms += waits[index] as number;
          worker.runUntil(ms);
          reached = Math.max(reached, place);
          worker.hear(history[place] as Mention, ms);
        }
        worker.runUntil(365 * DAY);
        expect(worker.fetches.length).toBeLessThanOrEqual(4);
        expect(worker.row).toMatchObject({ state: 'Done', publishedEnd: 'Done', dueAt: null });
      }),
      propertyRuns(),
    );
  });

  test('end within forty days if every answer is the same, useful or not', () => {
    fc.assert(
      fc.property(anyEvents, anyLook, fc.nat(3 * SECOND), (events, look, latencyMs) => {
        const worker = new Worker(() => look, { latencyMs });
        for (const { ms, of } of events.toSorted((left, right) => left.ms - right.ms)) worker.hear(of, ms);
        worker.runUntil(40 * DAY);
        expect(worker.row?.dueAt).toBeNull();
        expect(worker.fetches.length).toBeLessThan(look === 'fault' ? 3_000 : 200);
        const { length } = worker.fetches;
        worker.refresh(41 * DAY);
        worker.runUntil(365 * DAY);
        expect(worker.row?.dueAt).toBeNull();
        expect(worker.fetches.length - length).toBeLessThanOrEqual(look === 'fault' ? 100 : 10);
      }),
      propertyRuns(0.2),
    );
  });

  test('end after any changing answers, without two at one time, and none in the wait after a fault', () => {
    fc.assert(
      fc.property(
        anyEvents,
        fc.infiniteStream(anyLook),
        anyLook,
        fc.nat(3 * SECOND),
        (events, looks, last, latencyMs) => {
          const stream = looks[Symbol.iterator]();
          let faultMs = -1;
          const worker = new Worker(
            (ms) => {
              expect(ms - faultMs).toBeGreaterThan(faultMs < 0 ? 0 : SECOND);
              const look = ms < DAY ? (stream.next().value as Look) : last;
              faultMs = look === 'fault' ? ms : -1;
              return look;
            },
            { latencyMs },
          );
          for (const { ms, of } of events.toSorted((left, right) => left.ms - right.ms)) worker.hear(of, ms);
          worker.runUntil(100 * DAY);
          expect(worker.row?.dueAt).toBeNull();
        },
      ),
      propertyRuns(0.2),
    );
  });

  test('bring each announced note that the platform shows within an hour, or five rechecks miss it', () => {
    const notes = fc.array(
      fc.record({ ms: fc.nat(20 * MINUTE), lagMs: fc.nat(2 * HOUR), isProcessing: fc.boolean() }),
      { minLength: 1, maxLength: 4 },
    );
    fc.assert(
      fc.property(notes, (each) => {
        const shown = (ms: number) => each.filter((note) => note.ms + note.lagMs <= ms).length;
        const worker = new Worker((ms) => ({ state: 'Done', notes: shown(ms) }));
        const announced = each.toSorted((left, right) => left.ms - right.ms);
        for (const { ms, isProcessing } of announced) {
          const of: Mention = { eventType: 'PROCESSING', announcesNotes: true };
          worker.hear(isProcessing ? of : event('PROCESSING_NOTES_COMPLETED'), ms);
        }
        worker.runUntil(DAY);
        const lastMs = announced.at(-1)?.ms ?? 0;
        expect(worker.row?.notesRevision).toBeGreaterThanOrEqual(shown(lastMs + HOUR));
        const isFound = worker.row?.notesRevision === each.length;
        expect(isFound || worker.fetches.filter((ms) => ms > lastMs).length === 5).toBe(true);
      }),
      propertyRuns(),
    );
  });
});
