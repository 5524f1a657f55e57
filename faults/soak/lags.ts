/** Milliseconds of everything that came in one interval; null if nothing came. */
export interface Lag {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** Waits of one kind, since they were last taken. */
export class Lags {
  private waits: number[] = [];

  add(ms: number): void {
    this.waits.push(ms);
  }

  /** Takes the lags since the last call. */
  take(): Lag | null {
    const waits = this.waits.sort((a, b) => a - b);
    this.waits = [];
    if (waits.length === 0) return null;
    return { p50: shareOf(waits, 0.5), p99: shareOf(waits, 0.99), max: shareOf(waits, 1) };
  }
}

/** The middle value; of an even number the lower of the two. */
export const median = (values: readonly number[]): number =>
  shareOf(
    [...values].sort((a, b) => a - b),
    0.5,
  );

/** The value that the given share of all does not exceed; 0 of none. @param share in (0, 1] */
const shareOf = (sorted: readonly number[], share: number): number =>
  Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0);
