import { pauseMs, sourceOf } from './attempt-rules.js';

test('the first failures are answered at once, and each that follows waits longer, up to a second', () => {
  expect([1, 5, 6, 7, 8, 9, 10, 19, 5_000].map(pauseMs)).toEqual([0, 0, 100, 200, 400, 800, 1_000, 1_000, 1_000]);
});

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2:ffff::1', '2001:db8:1:2::/64'],
  ['unknown', 'unknown'],
  ['', 'unknown'],
])('failures from %j are counted by %j', (ip, source) => {
  expect(sourceOf(ip)).toBe(source);
});
