import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { backoffMs } from './backoff.js';

const bounds = { baseMs: 1_000, maxMs: 300_000 };
const fraction = fc.double({ min: 0, max: 0.999, noNaN: true });

test('the wait is never longer than the maximum and never shorter than three quarters of the base', () => {
  fc.assert(
    fc.property(fc.integer({ min: -3, max: 10_000 }), fraction, (failures, jitter) => {
      const wait = backoffMs(failures, jitter, bounds);
      expect(wait).toBeGreaterThanOrEqual(0.75 * bounds.baseMs);
      expect(wait).toBeLessThanOrEqual(bounds.maxMs);
      expect(Number.isInteger(wait)).toBe(true);
    }),
    propertyRuns(),
  );
});

test('the wait doubles with each consecutive fault', () => {
  expect([1, 2, 3, 4].map((failures) => backoffMs(failures, 0.5, bounds))).toEqual([1_000, 2_000, 4_000, 8_000]);
});

test('the jitter shortens or lengthens the wait by up to a quarter', () => {
  expect(backoffMs(3, 0, bounds)).toBe(3_000);
  expect(backoffMs(3, 0.999_999, bounds)).toBe(5_000);
});
