import { afterFailure, pauseAfter } from './push-rules.js';

const now = new Date('2026-01-31T08:00:00Z');
const DAY_MS = 86_400_000;
const after = (more: Partial<Parameters<typeof afterFailure>[0]>) =>
  afterFailure({ failures: 0, failingSince: null, status: 500, now, ...more });

test('attempts are repeated after 5 s, 30 s, 2 min, 10 min, then every hour', () => {
  const waits = [0, 1, 2, 3, 4, 5, 100].map((failures) => after({ failures }));
  expect(waits).toEqual([5, 30, 120, 600, 3_600, 3_600, 3_600].map((s) => ({ paused: null, waitMs: s * 1_000 })));
});

test('Retry-After lengthens the wait, and never shortens it', () => {
  expect(after({ retryAfterMs: 42_000 })).toEqual({ paused: null, waitMs: 42_000 });
  expect(after({ retryAfterMs: 1_000 })).toEqual({ paused: null, waitMs: 5_000 });
});

test('410 pauses immediately, even after a success', () => {
  expect(after({ status: 410, retryAfterMs: 1_000 })).toEqual({ paused: 'endpoint-gone' });
});

test('five days without a success pause, and not a moment less', () => {
  const failingFor = (ms: number) => after({ failures: 120, failingSince: new Date(now.getTime() - ms) });
  expect(failingFor(5 * DAY_MS - 1)).toEqual({ paused: null, waitMs: 3_600_000 });
  expect(failingFor(5 * DAY_MS)).toEqual({ paused: 'no-success' });
});

test('five days with fewer than 100 attempts do not pause: sending was held, or no worker ran', () => {
  const failingSince = new Date(now.getTime() - 6 * DAY_MS);
  expect(after({ failures: 99, failingSince })).toEqual({ paused: null, waitMs: 3_600_000 });
  expect(after({ failures: 100, failingSince })).toEqual({ paused: 'no-success' });
});

test.each([
  [null, undefined, false, null],
  [null, true, false, 'requested'],
  ['requested', undefined, true, 'requested'],
  ['requested', false, false, null],
  ['endpoint-gone', false, false, null],
  ['no-success', undefined, false, 'no-success'],
  ['cursor-expired', undefined, false, 'cursor-expired'],
  ['cursor-expired', true, false, 'cursor-expired'],
  ['cursor-expired', false, false, 'not-chosen'],
  ['cursor-expired', undefined, true, null],
  ['cursor-expired', true, true, 'requested'],
] as const)(
  'a subscription paused for %s, asked for %s with a place chosen (%s), is then paused for %s',
  (...given) => {
    const [old, wanted, isPlaceChosen, then] = given;
    expect(pauseAfter(old, wanted, isPlaceChosen)).toBe(then);
  },
);
