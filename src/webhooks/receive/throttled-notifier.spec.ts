import { CommitBell, RING_EVERY_MS } from './throttled-notifier.js';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('the first pull rings at once; many within the interval ring once more, at its end', () => {
  let rings = 0;
  const bell = new CommitBell(() => {
    rings += 1;
  });
  for (let i = 0; i < 50; i += 1) bell.pull();
  expect(rings).toBe(1);
  jest.advanceTimersByTime(RING_EVERY_MS);
  expect(rings).toBe(2);
  jest.advanceTimersByTime(10 * RING_EVERY_MS);
  expect(rings).toBe(2);
});

test('a ring that is owed is not lost by closing', () => {
  let rings = 0;
  const bell = new CommitBell(() => {
    rings += 1;
  });
  bell.pull();
  bell.pull();
  bell.close();
  expect(rings).toBe(2);
});
