import { nextPoll } from './result-refresher.js';

const start = new Date('2026-03-01T00:00:00Z');
const intervalAfter = (seconds: number) => {
  const now = new Date(start.getTime() + seconds * 1_000);
  return (nextPoll(start, now, 5_000).getTime() - now.getTime()) / 1_000;
};

it('the interval between lookups grows from 5 seconds to 6 hours', () => {
  expect([0, 10, 60, 3_600, 86_400, 30 * 86_400].map(intervalAfter)).toEqual([5, 5, 30, 1_800, 21_600, 21_600]);
});

it('a clock that was set back does not shorten the interval', () => {
  expect(intervalAfter(-3_600)).toBe(5);
});

it('a job of one day needs fewer than 30 lookups', () => {
  let now = start;
  let lookups = 0;
  for (; now.getTime() < start.getTime() + 86_400_000; lookups += 1) now = nextPoll(start, now, 5_000);
  expect(lookups).toBeLessThan(30);
});

it('the minimum interval is a setting, and applies to old jobs, too', () => {
  const now = new Date(start.getTime() + 10_000);
  expect(nextPoll(start, now, 60_000).getTime() - now.getTime()).toBe(60_000);
});
