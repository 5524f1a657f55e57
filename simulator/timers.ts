/** Milliseconds since the Unix epoch that never step back, with a fraction. */
export type NowMs = () => number;

/** The machine's steady clock: the limit is judged by it, so a corrected wall clock can't shrink a window. */
export const steadyNowMs: NowMs = () => performance.timeOrigin + performance.now();

/** Everything that is to happen later, so that closing or resetting the simulator leaves nothing behind. */
export class Timers {
  private readonly pending = new Map<NodeJS.Timeout, (() => void) | undefined>();

  /** Runs the work after so many milliseconds unless cancelled before. */
  later(ms: number, work: () => void): void {
    this.start(ms, work);
  }

  /** Resolves after so many milliseconds, at once when cancelled. */
  sleep(ms: number): Promise<void> {
    if (ms <= 0) return Promise.resolve();
    return new Promise((resolve) => this.start(ms, resolve, resolve));
  }

  /** Whether nothing is to happen later. */
  get areIdle(): boolean {
    return this.pending.size === 0;
  }

  cancelAll(): void {
    for (const [timer, whenCancelled] of this.pending) {
      clearTimeout(timer);
      whenCancelled?.();
    }
    this.pending.clear();
  }

  private start(ms: number, work: () => void, whenCancelled?: () => void): void {
    const timer = setTimeout(() => {
      this.pending.delete(timer);
      work();
    }, ms);
    this.pending.set(timer, whenCancelled);
  }
}
