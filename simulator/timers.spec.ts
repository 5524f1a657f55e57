import { Timers } from './timers.js';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

it('runs scheduled work at its time, and not before', async () => {
  const timers = new Timers();
  const happened: string[] = [];
  timers.later(30, () => happened.push('later'));
  void timers.sleep(40).then(() => happened.push('slept'));
  await jest.advanceTimersByTimeAsync(29);
  expect([happened, timers.count]).toEqual([[], 2]);
  await jest.advanceTimersByTimeAsync(1);
  expect(happened).toEqual(['later']);
  await jest.advanceTimersByTimeAsync(10);
  expect([happened, timers.count]).toEqual([['later', 'slept'], 0]);
});

it('needs no timer for 0 ms', async () => {
  await new Timers().sleep(0);
  expect(jest.getTimerCount()).toBe(0);
});

it('cancelling all timers wakes sleepers immediately, and runs no work', async () => {
  const timers = new Timers();
  const late = jest.fn();
  timers.later(30, late);
  const sleeper = timers.sleep(3_600_000);
  timers.cancelAll();
  await sleeper;
  await jest.advanceTimersByTimeAsync(60);
  expect([late.mock.calls.length, jest.getTimerCount()]).toEqual([0, 0]);
});
