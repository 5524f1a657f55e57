import fc from 'fast-check';
import { largestWindow, SlidingLimit } from './sliding-limit.js';

/** As `propertyRuns` of the service, which the simulator does not import. */
const RUNS = { seed: Number(process.env.SEED), numRuns: process.env.FULL === '1' ? 10_000 : 1_000 };
const arrivals = fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 }).map((at) => at.sort((a, b) => a - b));
const calls = fc.integer({ min: 1, max: 8 });
const WINDOW_MS = 100;

/** The definition: each arrival starts one window. */
function largestByDefinition(at: number[]): number {
  return Math.max(0, ...at.map((start) => at.filter((other) => other >= start && other < start + WINDOW_MS).length));
}

describe('the strict limit', () => {
  it('no sliding window contains more accepted arrivals than the limit', () => {
    const law = fc.property(arrivals, calls, (at, limit) => {
      const gate = new SlidingLimit();
      const accepted = at.filter((time) => gate.admit(time, limit, WINDOW_MS) === undefined);
      expect(largestByDefinition(accepted)).toBeLessThanOrEqual(limit);
    });
    fc.assert(law, RUNS);
  });

  it('refuses an arrival only if its window is full; a retry after the returned wait succeeds', () => {
    const law = fc.property(arrivals, calls, (at, limit) => {
      const gate = new SlidingLimit();
      const accepted: number[] = [];
      for (const time of at) {
        const waitMs = gate.admit(time, limit, WINDOW_MS);
        const inWindow = (end: number) => accepted.filter((other) => other > end - WINDOW_MS).length;
        if (waitMs === undefined) accepted.push(time);
        else expect([inWindow(time), inWindow(time + waitMs) < limit]).toEqual([limit, true]);
      }
    });
    fc.assert(law, RUNS);
  });

  it('finds the largest window, regardless of the order of arrivals', () => {
    const law = fc.property(arrivals, (at) => {
      expect(largestWindow([...at].reverse(), WINDOW_MS)).toBe(largestByDefinition(at));
    });
    fc.assert(law, RUNS);
  });

  it('a withdrawn arrival does not count', () => {
    const gate = new SlidingLimit();
    gate.admit(0, 1, WINDOW_MS);
    gate.withdraw(0);
    expect(gate.admit(1, 1, WINDOW_MS)).toBeUndefined();
  });
});
