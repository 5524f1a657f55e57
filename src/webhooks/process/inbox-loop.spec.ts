import { afterFailure, MAX_ATTEMPTS } from './inbox-loop.js';

test('the backoff grows for more than 30 minutes, then the delivery is dead', () => {
  const delays = Array.from({ length: MAX_ATTEMPTS - 1 }, (_, index) => afterFailure(index + 1, 0.5));
  expect(delays.every(({ state }) => state === 'failed')).toBe(true);
  const waits = delays.map(({ retryInMs }) => retryInMs ?? 0);
  expect(waits).toEqual([...waits].sort((a, b) => a - b));
  expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeGreaterThan(30 * 60_000);
  expect(afterFailure(MAX_ATTEMPTS, 0.5)).toEqual({ state: 'dead' });
});
