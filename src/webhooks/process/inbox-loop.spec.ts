import { afterFailure, MOST_ATTEMPTS } from './inbox-loop.js';

test('attempts come later and later, for more than half an hour, and then the delivery is dead', () => {
  const delays = Array.from({ length: MOST_ATTEMPTS - 1 }, (_, index) => afterFailure(index + 1, 0.5));
  expect(delays.every(({ state }) => state === 'failed')).toBe(true);
  const waits = delays.map(({ retryInMs }) => retryInMs ?? 0);
  expect(waits).toEqual([...waits].sort((a, b) => a - b));
  expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeGreaterThan(30 * 60_000);
  expect(afterFailure(MOST_ATTEMPTS, 0.5)).toEqual({ state: 'dead', retryInMs: null });
});
