import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { pauseMs } from './pacing.js';

const fraction = fc.double({ min: 0, max: 0.999, noNaN: true });

test('a pause follows Retry-After exactly, regardless of earlier failures', () => {
  fc.assert(
    fc.property(fc.nat({ max: 3_600_000 }), fc.nat(50), fraction, (asked, failures, jitter) => {
      expect(pauseMs(asked, failures, jitter)).toBe(asked);
    }),
    propertyRuns(),
  );
});

test('a pause is never negative', () => {
  expect(pauseMs(-5_000, 1, 0)).toBe(0);
});

test('a pause without Retry-After starts at a second and doubles with each 429 up to a minute', () => {
  expect(pauseMs(undefined, 1, 0.5)).toBe(1_000);
  expect(pauseMs(undefined, 2, 0.5)).toBe(2_000);
  expect(pauseMs(undefined, 5, 0.5)).toBe(16_000);
  expect(pauseMs(undefined, 50, 0.5)).toBe(60_000);
});

test('a pause is never shorter after one more 429, with the same random fraction', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 60 }), fraction, (failures, jitter) => {
      expect(pauseMs(undefined, failures + 1, jitter)).toBeGreaterThanOrEqual(pauseMs(undefined, failures, jitter));
    }),
    propertyRuns(),
  );
});
