import { ageFault } from './age-window.js';

const NOW = 1_800_000_000_000;

test.each([
  [0, undefined],
  [3_600_000, undefined],
  [3_600_001, 'stale'],
  [-300_000, undefined],
  [-300_001, 'future'],
])('within an hour an age of %d ms is %p', (age, fault) => {
  expect(ageFault(NOW - age, NOW, 3_600)).toBe(fault);
});

test('without a window any age will do, so that no retry is lost', () => {
  expect(ageFault(0, NOW, undefined)).toBeUndefined();
  expect(ageFault(999_999_999_999_999, NOW, undefined)).toBeUndefined();
});
