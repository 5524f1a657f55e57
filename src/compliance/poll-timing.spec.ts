import { nextPoll } from './result-refresher.js';

const start = new Date('2026-03-01T00:00:00Z');
const pauseAfter = (seconds: number) => {
  const now = new Date(start.getTime() + seconds * 1_000);
  return (nextPoll(start, now, 5_000).getTime() - now.getTime()) / 1_000;
};

it('the pauses between two looks grow, from five seconds to six hours', () => {
  expect([0, 10, 60, 3_600, 86_400, 30 * 86_400].map(pauseAfter)).toEqual([5, 5, 30, 1_800, 21_600, 21_600]);
});

it('a clock that was set back does not make the pause shorter', () => {
  expect(pauseAfter(-3_600)).toBe(5);
});

it('a job of one day costs few looks', () => {
  let now = start;
  let looks = 0;
  for (; now.getTime() < start.getTime() + 86_400_000; looks += 1) now = nextPoll(start, now, 5_000);
  expect(looks).toBeLessThan(30);
});

it('the shortest pause is a setting, and counts for old jobs too', () => {
  const now = new Date(start.getTime() + 10_000);
  expect(nextPoll(start, now, 60_000).getTime() - now.getTime()).toBe(60_000);
});
