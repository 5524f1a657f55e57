import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import type { Mention } from './apply-event.js';
import { DAY, type EventName, event, HOUR, MINUTE, SECOND } from './session-row.spec-support.js';
import { anyEvents, anyLook, type Look, Worker } from './session-worker.spec-support.js';

describe('the lookups of a session', () => {
  test('are at most four if it is ordinary, in any order of its events', () => {
    const order = fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4 });
    const pauses = fc.array(fc.nat(3 * MINUTE), { minLength: 4, maxLength: 4 });
    fc.assert(
      fc.property(order, pauses, fc.nat(3 * SECOND), fc.boolean(), (places, waits, latencyMs, hasNotes) => {
        const history = [
          event('CREATED', null),
          event('PROCESSING_STARTED'),
          event('PROCESSING_NOTES_COMPLETED', hasNotes),
          event('PROCESSING_COMPLETED', hasNotes),
        ];
        let reached = 0;
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
      propertyRuns(0.2),
    );
  });

  test('end within forty days if every answer is the same, useful or not', () => {
    fc.assert(
      fc.property(anyEvents, anyLook, fc.nat(3 * SECOND), (events, look, latencyMs) => {
        const worker = new Worker(() => look, { latencyMs });
        for (const { ms, of } of events) worker.hear(of, ms);
        worker.runUntil(40 * DAY);
        expect(worker.row?.dueAt).toBeNull();
        expect(worker.fetches.length).toBeLessThan(look === 'fault' ? 3_000 : 200);
        const { length } = worker.fetches;
        worker.refresh(41 * DAY);
        worker.runUntil(365 * DAY);
        expect(worker.row?.dueAt).toBeNull();
        expect(worker.fetches.length - length).toBeLessThanOrEqual(look === 'fault' ? 100 : 10);
      }),
      propertyRuns(0.1),
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
          for (const { ms, of } of events) worker.hear(of, ms);
          worker.runUntil(100 * DAY);
          expect(worker.row?.dueAt).toBeNull();
        },
      ),
      propertyRuns(0.1),
    );
  });

  test('bring each announced note that the platform shows within an hour, or five rechecks miss it', () => {
    const notes = fc.array(fc.record({ seconds: fc.nat(1_200), lag: fc.nat(7_200) }), { minLength: 1, maxLength: 4 });
    // Both APIs tell of the same notes.
    const apis = fc.subarray(['sessions', 'processing'] as const, { minLength: 1 });
    fc.assert(
      fc.property(notes, apis, (drawn, told) => {
        const each = drawn.map(({ seconds, lag }) => ({ ms: seconds * SECOND, lagMs: lag * SECOND }));
        const shown = (ms: number) => each.filter((note) => note.ms + note.lagMs <= ms).length;
        const worker = new Worker((ms) => ({ state: 'Done', notes: shown(ms) }));
        const announced = each.toSorted((left, right) => left.ms - right.ms);
        for (const { ms } of announced) {
          if (told.includes('sessions')) worker.hear(event('PROCESSING_NOTES_COMPLETED'), ms);
          if (told.includes('processing')) worker.hear({ eventType: 'PROCESSING', announcesNotes: true }, ms);
        }
        worker.runUntil(DAY);
        const lastMs = announced.at(-1)?.ms ?? 0;
        expect(worker.row?.notesRevision).toBeGreaterThanOrEqual(shown(lastMs + HOUR));
        const isFound = worker.row?.notesRevision === each.length;
        // In a burst, the fetch for the last event is a second late.
        const rechecks = worker.fetches.filter((ms) => ms > lastMs + SECOND).length;
        expect(rechecks).toBeLessThanOrEqual(5);
        expect(isFound || rechecks === 5).toBe(true);
      }),
      propertyRuns(0.2),
    );
  });

  test('end in what the platform shows, also if its replicas lag, events are late and calls fail', () => {
    const steps = fc.record({
      failures: fc.nat(2),
      gaps: fc.array(fc.integer({ min: 1, max: 1_200 }), { minLength: 8, maxLength: 8 }),
      delays: fc.array(fc.nat(300), { minLength: 8, maxLength: 8 }),
      outage: fc.tuple(fc.nat(7_200), fc.nat(7_200)),
    });
    const lags = fc.infiniteStream(fc.nat(240));
    fc.assert(
      fc.property(steps, lags, ({ failures, gaps, delays, outage: [downS, lengthS] }, lagStream) => {
        const again: [string, EventName][] = [
          ['Error', 'PROCESSING_FAILED'],
          ['Processing', 'PROCESSING_STARTED'],
        ];
        const history: [string, EventName][] = [
          ['InProgress', 'CREATED'],
          ['Processing', 'PROCESSING_STARTED'],
          ...Array.from({ length: failures }, () => again).flat(),
          ['Done', 'PROCESSING_NOTES_COMPLETED'],
          ['Done', 'PROCESSING_COMPLETED'],
        ];
        let sumMs = 0;
        const happened = history.map(([state, name], place) => {
          const changedMs = sumMs;
          sumMs += (gaps[place] as number) * SECOND;
          return { changedMs, state, name, ms: changedMs + (delays[place] as number) * SECOND };
        });
        const lag = lagStream[Symbol.iterator]();
        const worker = new Worker((ms) => {
          if (ms >= downS * SECOND && ms < (downS + lengthS) * SECOND) return 'fault';
          const seenMs = ms - (lag.next().value as number) * SECOND;
          const state = happened.findLast(({ changedMs }) => changedMs <= seenMs)?.state;
          return state === undefined ? 'gone' : { state, notes: state === 'Done' ? 1 : 0, code: 'a' };
        });
        const arrived = happened.toSorted((left, right) => left.ms - right.ms);
        for (const { name, ms } of arrived) worker.hear(event(name), ms);
        worker.runUntil(40 * DAY);
        expect(worker.row).toMatchObject({ state: 'Done', stateFrom: 'platform', notesRevision: 1, dueAt: null });
        const ends = worker.published.filter(({ type }) => type === 'session.completed' || type === 'session.failed');
        expect(ends.at(-1)?.type).toBe('session.completed');
      }),
      propertyRuns(0.2),
    );
  });
});
