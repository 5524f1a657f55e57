import { answeredEventAt, awaitedAfterFetch, lagSeconds, nextLookup, reopening } from './apply-fetch.js';

const POLICY = { afterMs: 900_000, everyMs: 600_000 };
const NOW = new Date('2026-03-01T12:00:00Z');
const ago = (ms: number) => new Date(NOW.getTime() - ms);
const HOUR = 3_600_000;

function waitMs(subject: Partial<Parameters<typeof nextLookup>[0]>): number | null {
  const session = {
    state: 'Processing',
    eventState: 'Processing',
    createdAt: ago(60_000),
    lastEventAt: ago(60_000),
    reopenedAt: null,
    ...subject,
  } as const;
  const at = nextLookup(session, NOW, POLICY);
  return at && at.getTime() - NOW.getTime();
}

describe('the next lookup of a session', () => {
  test.each(['Done', 'Error'] as const)('is never if it is %s', (state) => {
    expect(waitMs({ state })).toBeNull();
  });

  test('is at the age of the setting', () => {
    expect(waitMs({})).toBe(840_000);
  });

  test('is after the interval of the setting if it is older', () => {
    expect(waitMs({ createdAt: ago(HOUR / 2) })).toBe(600_000);
  });

  test('is later the older it is, but at most after a day', () => {
    expect(waitMs({ createdAt: ago(8 * HOUR) })).toBe(2 * HOUR);
    expect(waitMs({ createdAt: ago(9_000 * HOUR) })).toBe(24 * HOUR);
  });

  test('is soon if it is Processing after its last event', () => {
    expect(waitMs({ eventState: 'Done', lastEventAt: ago(500) })).toBe(3_000);
    expect(waitMs({ eventState: 'Done', lastEventAt: ago(20_000) })).toBe(10_000);
  });

  test('is soon if it is processed again, regardless of its age', () => {
    const old = { eventState: 'Done', createdAt: ago(720 * HOUR), lastEventAt: ago(719 * HOUR) } as const;
    expect(waitMs({ ...old, reopenedAt: NOW })).toBe(3_000);
    expect(waitMs({ ...old, reopenedAt: ago(20_000) })).toBe(10_000);
    expect(waitMs({ ...old, eventState: null, reopenedAt: ago(HOUR) })).toBe(HOUR / 2);
    expect(waitMs({ ...old, lastEventAt: ago(10_000), reopenedAt: ago(HOUR) })).toBe(5_000);
  });
});

describe('the start of a reprocessing', () => {
  const known = { state: 'Done' as const, fetchedAt: ago(HOUR), reopenedAt: null };

  test('is the first answer in a state before the end, until the session ends again', () => {
    expect(reopening(known, 'Processing', NOW)).toBe(NOW);
    const since = ago(HOUR);
    expect(reopening({ ...known, state: 'Processing', reopenedAt: since }, 'Processing', NOW)).toBe(since);
    expect(reopening({ ...known, state: 'Processing', reopenedAt: since }, 'Done', NOW)).toBeNull();
  });

  test('is unknown if only events reported the end', () => {
    expect(reopening({ ...known, fetchedAt: null }, 'Processing', NOW)).toBeNull();
  });
});

describe('the lag of notes', () => {
  test('is the age of the newest event that the fetch answers', () => {
    const eventAt = ago(2_500);
    expect(answeredEventAt({ lastEventAt: eventAt, fetchedAt: null })).toBe(eventAt);
    expect(answeredEventAt({ lastEventAt: eventAt, fetchedAt: ago(2_501) })).toBe(eventAt);
    expect(lagSeconds(eventAt, NOW)).toBe(2.5);
  });

  test('is not measured without an event, or after an earlier answer', () => {
    expect(answeredEventAt({ lastEventAt: ago(HOUR), fetchedAt: ago(HOUR) })).toBeNull();
    expect(answeredEventAt({ lastEventAt: null, fetchedAt: null })).toBeNull();
  });

  test('is never negative', () => {
    expect(lagSeconds(ago(-5), NOW)).toBe(0);
  });
});

describe('notes that a fetch did not show', () => {
  const awaitedAfter = (notesAwaited: number, newRevisions: number, rechecks = 0) =>
    awaitedAfterFetch({ notesAwaited, rechecks }, newRevisions, NOW);
  const none = { notesAwaited: 0, rechecks: 0, recheckAt: null };

  test('are fetched again after 2 s, 10 s, 1 min, 10 min and 1 h, then no longer', () => {
    const waits = [0, 1, 2, 3, 4].map((rechecks) => awaitedAfter(1, 0, rechecks));
    expect(waits).toEqual(
      [2, 10, 60, 600, 3_600].map((s, n) => ({ notesAwaited: 1, rechecks: n + 1, recheckAt: ago(-s * 1_000) })),
    );
    expect(awaitedAfter(1, 0, 5)).toEqual(none);
  });

  test('are fewer by the revisions that it stored', () => {
    expect(awaitedAfter(3, 2)).toMatchObject({ notesAwaited: 1, rechecks: 1 });
    expect(awaitedAfter(1, 1, 2)).toEqual(none);
    expect(awaitedAfter(1, 2)).toEqual(none);
  });
});
