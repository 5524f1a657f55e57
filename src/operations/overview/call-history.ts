/** One interval of the calls to user management. */
export interface CallInterval {
  at: Date;
  calls: number;
  refused: number;
  failed: number;
}

export const INTERVAL_MS = 5 * 60_000;

/** Six hours. */
const INTERVALS = 72;

/** Intervals at the end that are counted anew: an answer to a call comes long before they are over. */
const OPEN_INTERVALS = 3;

/**
 * How many calls there were in each interval of the last hours. What is over does not change: it is counted once in each
 * process, so that a look costs a quarter of an hour's calls and not those of six hours.
 */
export class CallHistory {
  private readonly counted = new Map<number, CallInterval>();
  /** All intervals before it are counted. */
  private countedToMs = 0;

  /** The moment from which calls are still to be counted. */
  from(now: Date): Date {
    return new Date(Math.max(firstOf(now), this.countedToMs));
  }

  /** @param fresh the intervals with calls from `from(now)` on @returns the whole history, the oldest first */
  add(now: Date, fresh: readonly CallInterval[]): CallInterval[] {
    const first = firstOf(now);
    const fromMs = this.from(now).getTime();
    for (const at of this.counted.keys()) if (at < first || at >= fromMs) this.counted.delete(at);
    for (const interval of fresh) this.counted.set(interval.at.getTime(), interval);
    this.countedToMs = first + (INTERVALS - OPEN_INTERVALS) * INTERVAL_MS;
    return Array.from({ length: INTERVALS }, (_, n) => {
      const at = first + n * INTERVAL_MS;
      return this.counted.get(at) ?? { at: new Date(at), calls: 0, refused: 0, failed: 0 };
    });
  }
}

/** The beginning of the first interval; the last is the one that has begun. */
function firstOf(now: Date): number {
  return (Math.floor(now.getTime() / INTERVAL_MS) - INTERVALS + 1) * INTERVAL_MS;
}
