import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { nextLookup } from './next-lookup.js';
import type { SessionRow } from './session-row.js';
import { at, DAY, fetched, HOUR, MINUTE, NOW, POLICY, SECOND, session } from './session-row.spec-support.js';

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
