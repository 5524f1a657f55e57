import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { shuffledRows } from './import-runner.service.js';

/** How far the number of some rows among the first of an order may be from their share, as a part of all rows. */
const MOST_OFF = 0.03;

test('people go in an order that takes of each stretch of the file, at any time, its share', () => {
  const part = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(fc.integer({ min: 500, max: 20_000 }), part, part, (last, some, taken) => {
      const first = [...shuffledRows(last)].slice(0, Math.ceil(taken * last));
      const length = Math.round(some * last);
      const among = first.filter((rowNo) => rowNo <= length).length;
      expect(Math.abs(among - (first.length * length) / last)).toBeLessThan(MOST_OFF * last);
    }),
    propertyRuns(0.2),
  );
});

test.each([0, 1, 2, 3, 10, 997, 1_000, 65_536])('each of %d rows goes once', (last) => {
  const rows = [...shuffledRows(last)].sort((left, right) => left - right);
  expect(rows).toEqual(Array.from({ length: last }, (_, at) => at + 1));
});
