import { sharedPauseMs } from './pacing.js';

const now = new Date('2026-11-21T05:00:00Z');
const window = { now, blockedUntil: null, bulkNextAt: null, occupied: 0, firstFreeAt: null };
const inMs = (ms: number) => ({ ...window, firstFreeAt: new Date(now.getTime() + ms) });

test('all calls pause for Retry-After after a 429, but at most a minute', () => {
  expect(sharedPauseMs(7_000, window)).toBe(7_000);
  expect(sharedPauseMs(3_600_000, window)).toBe(60_000);
});

test('without Retry-After, all calls pause until the first permit is free', () => {
  expect(sharedPauseMs(null, inMs(12_000))).toBe(12_000);
  expect(sharedPauseMs(null, inMs(90_000))).toBe(60_000);
  expect(sharedPauseMs(null, window)).toBe(1_000);
});
