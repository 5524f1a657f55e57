import { Clock } from '../config/clock.js';
import { MinuteCounts } from './minute-counts.js';

const OTHERS: [string, string] = ['others', 'others'];

/** Counts, and what they reported. The minute ends when the test calls `end`. */
function counting() {
  const reports: [sample: string, times: number][] = [];
  let end = () => {};
  const after = (_ms: number, work: () => void) => {
    end = work;
    return () => {};
  };
  const clock = Object.assign(new Clock(), { after });
  const counts = new MinuteCounts<string>(clock, (sample, times) => void reports.push([sample, times]));
  return { counts, reports, end: () => end() };
}

describe('MinuteCounts', () => {
  it('reports repetitions when the minute ends, without the first event', () => {
    const { counts, reports, end } = counting();
    const first = (kind: string) => counts.isFirst([kind, kind], OTHERS);
    expect([first('a'), first('a'), first('b'), first('a')]).toEqual([true, false, true, false]);
    expect(reports).toEqual([]);
    end();
    expect(reports).toEqual([['a', 2]]);
    expect(first('a')).toBe(true);
  });

  it('counts events beyond 200 kinds together', () => {
    const { counts, reports, end } = counting();
    for (let kind = 0; kind < 1_000; kind += 1) counts.count([`${kind}`, `${kind}`], OTHERS);
    end();
    expect(reports).toHaveLength(201);
    expect(reports.at(-1)).toEqual(['others', 800]);
  });
});
