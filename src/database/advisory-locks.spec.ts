import { LOCKS } from './advisory-locks.js';

test('no two locks have one key', () => {
  expect(new Set(Object.values(LOCKS)).size).toBe(Object.keys(LOCKS).length);
});
