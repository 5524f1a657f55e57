import { achievedPaceMs, type CallTempo, grantedInMs } from './throughput.js';

const tempo: CallTempo = {
  limit: { calls: 300, windowMs: 60_000 },
  latencyMs: 0,
  achievedMs: null,
  sinceGrantMs: null,
  freeInMs: [],
  paceInMs: 0,
  blockedMs: 0,
};

/** So many grants, a second apart. */
const seconds = (count: number, from = 0) => Array.from({ length: count }, (_, at) => from + at * 1_000);

describe('the pace of calls', () => {
  it('is what lies between two grants, pauses left out', () => {
    expect(achievedPaceMs(seconds(61))).toBe(1_000);
    expect(achievedPaceMs([...seconds(40), ...seconds(40, 3_600_000)])).toBe(1_000);
  });

  it('is not known after a few', () => {
    expect(achievedPaceMs(seconds(60))).toBeNull();
    expect(achievedPaceMs([])).toBeNull();
  });
});

describe('the moment by which so many calls are granted', () => {
  it('follows from the even pace, which makes good what was missed, by a second at most', () => {
    expect(grantedInMs(0, tempo)).toBe(0);
    expect(grantedInMs(101, { ...tempo, paceInMs: -60_000 })).toBe(100 * 200 - 1_000);
    expect(grantedInMs(101, { ...tempo, paceInMs: 200 })).toBe(101 * 200);
  });

  it('follows the achieved pace once it lags by more than can be made good', () => {
    const slow = { ...tempo, achievedMs: 1_000 };
    expect(grantedInMs(101, { ...slow, paceInMs: -60_000 })).toBe(100 * 1_000);
    expect(grantedInMs(101, { ...slow, paceInMs: -500 })).toBe(100 * 200 - 500);
    expect(grantedInMs(101, { ...tempo, achievedMs: 20 })).toBe(100 * 200);
  });

  it('comes after the rest of a pause', () => {
    expect(grantedInMs(101, { ...tempo, blockedMs: 10_000 })).toBe(10_000 + 100 * 200 - 1_000);
  });

  it('waits for slots of a full window, which slow answers hold for longer', () => {
    const slow = { ...tempo, latencyMs: 6_000 };
    // Two slots of 300 are kept for interactive work: the 299th call waits until the first one's slot is free.
    expect(grantedInMs(299, slow)).toBe(66_000);
    expect(grantedInMs(2 * 298 + 1, slow)).toBe(2 * 66_000);
    const full = Array.from({ length: 298 }, (_, at) => 5_000 + at);
    expect(grantedInMs(1, { ...tempo, freeInMs: full })).toBe(5_000);
  });

  it('is told for a million calls by their first windows', () => {
    expect(grantedInMs(1_000_000, { ...tempo, latencyMs: 6_000 }) / ((66_000 / 298) * 1_000_000)).toBeCloseTo(1, 2);
  });
});
