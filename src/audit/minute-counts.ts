import type { Clock } from '../config/clock.js';

const MINUTE_MS = 60_000;

/** Maximum kinds that are counted separately. With those of `others`, they bound what a flood adds to log and audit log. */
const MAX_KINDS = 200;

/** A counted event: its kind, and a sample. */
type Counted<T> = [kind: string, sample: T];

/** Counts repeated events by kind, and reports them when the minute of the first one ends. Bounded in memory. */
export class MinuteCounts<T> {
  private readonly counts = new Map<string, { sample: T; times: number }>();
  private cancelReport: (() => void) | undefined;

  /** @param report receives a sample of each kind, and how often it was counted */
  constructor(
    private readonly clock: Clock,
    private readonly report: (sample: T, times: number) => Promise<void> | void,
  ) {}

  /** True for the first event of a kind in this minute, which is not counted. Repetitions are. */
  isFirst([kind, sample]: Counted<T>, others: Counted<T>): boolean {
    const isFirst = !this.counts.has(kind) && this.counts.size < MAX_KINDS;
    this.count([kind, sample], others, isFirst ? 0 : 1);
    return isFirst;
  }

  /** Counts an event. @param others the kind under which it is counted if there are too many kinds */
  count([kind, sample]: Counted<T>, others: Counted<T>, times = 1): void {
    const known = this.counts.get(kind);
    if (known) known.times += times;
    else if (this.counts.size < MAX_KINDS || kind === others[0]) this.counts.set(kind, { sample, times });
    else this.count(others, others, times);
    this.cancelReport ??= this.clock.after(MINUTE_MS, () => void this.reportAll());
  }

  /** Makes the next event of a kind the first one. */
  forget(kind: string): void {
    this.counts.delete(kind);
  }

  /** Ends the minute now. */
  async reportAll(): Promise<void> {
    this.cancelReport?.();
    this.cancelReport = undefined;
    const counts = [...this.counts.values()].filter(({ times }) => times > 0);
    this.counts.clear();
    await Promise.all(counts.map(({ sample, times }) => this.report(sample, times)));
  }
}
