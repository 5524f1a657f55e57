import { backoff } from './backoff.js';

test('a row whose work fails is due again after 15 s, 1 min, 5 min, 30 min, then every hour', () => {
  const now = new Date('2026-01-31T08:00:00Z');
  const seconds = [0, 1, 2, 3, 4, 5, 6, 1_000].map(
    (failures) => (backoff(failures, now).getTime() - now.getTime()) / 1_000,
  );
  expect(seconds).toEqual([15, 15, 60, 300, 1_800, 3_600, 3_600, 3_600]);
});
