import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { type CallLimit, type CallWindow, earliest, type Lane, nextBulkAt } from './pacing.js';

const SEND_WITHIN_MS = 1_000;
const TIMEOUT_MS = 10_000;

/** The arrival and the answer of a call, in milliseconds after its grant. */
interface Fate {
  arrivesAfter: number;
  /** Null without an answer: the permit is occupied until the timeout. */
  answeredAfter: number | null;
}

/** Rounds to 1/1024 ms: finer than a Date, like the microseconds of a database, and exact in floating point. */
function roundFinely(milliseconds: number): number {
  return Math.round(milliseconds * 1_024) / 1_024;
}

/** The log of calls in memory. */
class Log {
  readonly arrivals: number[] = [];
  readonly granted: { lane: Lane; at: number }[] = [];
  private readonly permits: { until: number; answeredAt: number }[] = [];
  private bulkNextAt: Date | null = null;

  constructor(private readonly limit: CallLimit) {}

  window(now: number): CallWindow {
    for (const permit of this.permits)
      if (permit.answeredAt <= now) permit.until = permit.answeredAt + this.limit.windowMs;
    const occupied = this.permits.filter((permit) => permit.until > now).map((permit) => permit.until);
    return {
      now: new Date(now),
      blockedUntil: null,
      bulkNextAt: this.bulkNextAt,
      occupied: occupied.length,
      firstFreeAt: occupied.length > 0 ? new Date(Math.min(...occupied)) : null,
    };
  }

  /** Takes a permit if the lane may. @returns when to ask again; null if granted */
  ask(lane: Lane, now: number, { arrivesAfter, answeredAfter }: Fate): Date | null {
    const window = this.window(now);
    const moment = earliest(lane, window, this.limit);
    if (moment > window.now) return moment;
    if (lane === 'bulk') this.bulkNextAt = nextBulkAt(window, this.limit);
    const until = now + SEND_WITHIN_MS + TIMEOUT_MS + this.limit.windowMs;
    this.permits.push({ until, answeredAt: answeredAfter === null ? Infinity : now + answeredAfter });
    this.arrivals.push(now + arrivesAfter);
    this.granted.push({ lane, at: now });
    if (this.permits.length > 4 * this.limit.calls)
      this.permits.splice(
        0,
        this.permits.findIndex((permit) => permit.until > now),
      );
    return null;
  }

  /** The most arrivals in any sliding window. */
  get fullestWindow(): number {
    const sorted = [...this.arrivals].sort((one, other) => one - other);
    let first = 0;
    let most = 0;
    for (const [last, arrival] of sorted.entries()) {
      while (arrival - (sorted[first] ?? 0) >= this.limit.windowMs) first++;
      most = Math.max(most, last - first + 1);
    }
    return most;
  }
}

const anyFate = fc
  .tuple(
    fc.double({ min: 0, max: SEND_WITHIN_MS + TIMEOUT_MS, noNaN: true }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.nat(9),
  )
  .map(
    ([total, part, lost]): Fate => ({
      arrivesAfter: roundFinely(total * part),
      answeredAfter: lost === 0 ? null : roundFinely(total),
    }),
  );

test('no sliding window exceeds the limit, regardless of callers and arrival times', () => {
  const asks = fc.array(
    fc.record({
      after: fc.oneof(
        fc.constant(0),
        fc.double({ min: 0, max: 50, noNaN: true }),
        fc.double({ min: 0, max: 3_000, noNaN: true }),
      ),
      lane: fc.constantFrom<Lane>('interactive', 'interactive', 'bulk'),
      fate: anyFate,
      greedy: fc.boolean(),
    }),
    { minLength: 30, maxLength: 200, size: 'max' },
  );
  const limits = fc.record({ calls: fc.integer({ min: 1, max: 12 }), windowMs: fc.constantFrom(500, 1_000, 5_000) });
  fc.assert(
    fc.property(limits, asks, (limit, wishes) => {
      const log = new Log(limit);
      let now = roundFinely(1_000_000.123);
      for (const { after, lane, fate, greedy } of wishes) {
        now += roundFinely(after);
        const again = log.ask(lane, now, fate);
        // A greedy caller asks again exactly at the returned time.
        if (again && greedy) {
          now = Math.max(now, again.getTime());
          log.ask(lane, now, fate);
        }
      }
      expect(log.fullestWindow).toBeLessThanOrEqual(limit.calls);
    }),
    propertyRuns(0.4),
  );
});

test('the limit holds when a full window follows just before the end of a single call’s window', () => {
  const limit = { calls: 10, windowMs: 1_000 };
  const log = new Log(limit);
  const quick: Fate = { arrivesAfter: 1, answeredAfter: 2 };
  log.ask('interactive', 0, quick);
  for (let now = 990; now < 1_100; now++) log.ask('interactive', now, quick);
  expect(log.fullestWindow).toBe(10);
  expect(log.granted).toHaveLength(11);
});

/** Generates uniform fractions from a seed (a linear congruential generator, Numerical Recipes §7.1). */
function fractions(start: number): () => number {
  let state = start;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Simulates endless bulk work with answers of up to a second, and occasional interactive calls. */
function busyMinutes(minutes: number, everyInteractiveMs: number, random: () => number) {
  const limit = { calls: 300, windowMs: 60_000 };
  const log = new Log(limit);
  const waits: number[] = [];
  const end = minutes * 60_000;
  let clinicianAt = everyInteractiveMs;
  let now = 0;
  while (now < end) {
    const answeredAfter = roundFinely(random() * 1_000);
    const fate: Fate = { arrivesAfter: roundFinely(answeredAfter * random()), answeredAfter };
    const lane: Lane = now >= clinicianAt ? 'interactive' : 'bulk';
    const again = log.ask(lane, now, fate);
    if (again) {
      // A worker wakes up some milliseconds late.
      const woken = again.getTime() + roundFinely(random() * 30);
      now = lane === 'bulk' ? Math.min(woken, Math.max(now + 1, clinicianAt)) : woken;
    } else if (lane === 'interactive') {
      waits.push(now - clinicianAt);
      clinicianAt = now + roundFinely(everyInteractiveMs * random() * 2);
    } else now += roundFinely(random() * 5);
  }
  return { log, waits, limit };
}

test('endless bulk work uses at least 97% of the budget and never exceeds it', () => {
  fc.assert(
    fc.property(fc.noBias(fc.nat()), (start) => {
      const { log, limit } = busyMinutes(6, Infinity, fractions(start));
      const steady = log.arrivals.filter((arrival) => arrival >= 60_000 && arrival < 360_000).length;
      expect(log.fullestWindow).toBeLessThanOrEqual(limit.calls);
      expect(steady / (5 * limit.calls)).toBeGreaterThanOrEqual(0.97);
    }),
    propertyRuns(0.003),
  );
});

test('interactive work gets a permit immediately during bulk work', () => {
  fc.assert(
    fc.property(fc.noBias(fc.nat()), (start) => {
      const { log, waits, limit } = busyMinutes(6, 4_000, fractions(start));
      const sorted = waits.sort((one, other) => one - other);
      expect(sorted.length).toBeGreaterThan(40);
      expect(sorted[Math.floor(sorted.length * 0.95)]).toBeLessThan(50);
      expect(log.fullestWindow).toBeLessThanOrEqual(limit.calls);
    }),
    propertyRuns(0.003),
  );
});

describe('the earliest time of a permit', () => {
  const limit = { calls: 300, windowMs: 60_000 };
  const now = new Date(1_000_000);
  const free: CallWindow = { now, blockedUntil: null, bulkNextAt: null, occupied: 0, firstFreeAt: null };
  const at = (ms: number) => new Date(now.getTime() + ms);

  test('is now for both lanes while a permit is free', () => {
    expect(earliest('interactive', free, limit)).toEqual(now);
    expect(earliest('bulk', free, limit)).toEqual(now);
  });

  test('is the end of the pause after a 429, for both lanes', () => {
    const blocked = { ...free, blockedUntil: at(5_000) };
    expect(earliest('interactive', blocked, limit)).toEqual(at(5_000));
    expect(earliest('bulk', blocked, limit)).toEqual(at(5_000));
  });

  test('depends on the pace only for bulk work', () => {
    const paced = { ...free, bulkNextAt: at(200) };
    expect(earliest('interactive', paced, limit)).toEqual(now);
    expect(earliest('bulk', paced, limit)).toEqual(at(200));
  });

  test('is later than now for a full window, even after rounding', () => {
    const full = { ...free, occupied: 300, firstFreeAt: now };
    expect(earliest('interactive', full, limit).getTime()).toBeGreaterThan(now.getTime());
  });

  test('reserves the last permits for interactive work', () => {
    const nearlyFull = { ...free, occupied: 298, firstFreeAt: at(90) };
    expect(earliest('interactive', nearlyFull, limit)).toEqual(now);
    expect(earliest('bulk', nearlyFull, limit)).toEqual(at(91));
    expect(earliest('bulk', { ...nearlyFull, occupied: 297 }, limit)).toEqual(now);
  });

  test('paces bulk work at the window divided by the limit, catching up at most a second', () => {
    expect(nextBulkAt({ now, bulkNextAt: at(0) }, limit)).toEqual(at(200));
    expect(nextBulkAt({ now, bulkNextAt: at(-300) }, limit)).toEqual(at(-100));
    expect(nextBulkAt({ now, bulkNextAt: at(-60_000) }, limit)).toEqual(at(-800));
    expect(nextBulkAt({ now, bulkNextAt: null }, limit)).toEqual(at(-800));
  });
});
