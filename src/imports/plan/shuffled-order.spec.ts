import fc from 'fast-check';
import { shuffledPlace, shuffledRows } from './shuffled-order.js';

const SEED = Number(process.env.SEED);

/** How far the number of some rows among the first of an order may be from their share: of 2,000 rows. */
const MOST_OFF = 4;

describe(`the order in which the people of an import go (SEED=${SEED})`, () => {
  const rows = fc.record({
    before: fc.nat(1_000_000),
    count: fc.integer({ min: 1, max: 2_000 }),
    some: fc.double({ min: 0, max: 1, noNaN: true }),
    taken: fc.double({ min: 0, max: 1, noNaN: true }),
  });

  it('takes of each stretch of the file, at any time, the share that it has of all', () => {
    fc.assert(
      fc.property(rows, ({ before, count, some, taken }) => {
        const order = Array.from({ length: count }, (_, at) => before + at + 1);
        order.sort((left, right) => shuffledPlace(left) - shuffledPlace(right));
        const first = order.slice(0, Math.ceil(taken * count));
        const length = Math.round(some * count);
        const among = first.filter((rowNo) => rowNo <= before + length).length;
        expect(Math.abs(among - (first.length * length) / count)).toBeLessThan(MOST_OFF);
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  it('gives each row a place of its own', () => {
    const places = new Set(Array.from({ length: 100_000 }, (_, at) => shuffledPlace(at + 1)));
    expect(places.size).toBe(100_000);
  });
});

test(`the rows are given in the order of their places, each of them once (SEED=${process.env.SEED})`, () => {
  const lasts = fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 50, max: 5_000 }));
  fc.assert(
    fc.property(lasts, (last) => {
      const sorted = Array.from({ length: last }, (_, at) => at + 1).sort(
        (a, b) => shuffledPlace(a) - shuffledPlace(b),
      );
      expect([...shuffledRows(last)]).toEqual(sorted);
    }),
    { seed: Number(process.env.SEED), numRuns: 60 },
  );
});
