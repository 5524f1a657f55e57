/** Milliseconds since the Unix epoch that never step back, with a fraction. */
export type NowMs = () => number;

/** The machine's monotonic clock. The limit uses it, so a corrected wall clock cannot shorten a window. */
export const steadyNowMs: NowMs = () => performance.timeOrigin + performance.now();

/** Runs `work` once after `ms` milliseconds. @returns a function that cancels it */
export type After = (ms: number, work: () => void) => () => void;

const realAfter: After = (ms, work) => {
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
};

/** All pending timers, so that closing or resetting the simulator leaves none behind. */
export class Timers {
  private readonly pending = new Map<object, { takeBack: () => void; whenCancelled: (() => void) | undefined }>();

  constructor(private readonly after: After = realAfter) {}

  /** Runs `work` after `ms` milliseconds unless it is cancelled. */
  later(ms: number, work: () => void): void {
    this.start(ms, work);
  }

  /** Resolves after `ms` milliseconds, or immediately when cancelled. */
  sleep(ms: number): Promise<void> {
    if (ms <= 0) return Promise.resolve();
    return new Promise((resolve) => this.start(ms, resolve, resolve));
  }

  /** The number of pending timers. */
  get count(): number {
    return this.pending.size;
  }

  cancelAll(): void {
    for (const { takeBack, whenCancelled } of this.pending.values()) {
      takeBack();
      whenCancelled?.();
    }
    this.pending.clear();
  }

  private start(ms: number, work: () => void, whenCancelled?: () => void): void {
    const timer = {};
    const takeBack = this.after(ms, () => {
      this.pending.delete(timer);
      work();
    });
    this.pending.set(timer, { takeBack, whenCancelled });
  }
}
