import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds of lateness that are made up for; what is later is left out. */
const CATCH_UP_MS = 5_000;

/** Concurrent work until the end of the soak. */
export class Shift {
  private readonly end = new AbortController();
  private readonly loops: Promise<void>[] = [];
  private fault: unknown;

  constructor() {
    setMaxListeners(0, this.end.signal); // one for each loop
  }

  get isOver(): boolean {
    return this.end.signal.aborted;
  }

  /** Does work again and again, each time after a wait. @param waitMs since the work before was due */
  repeat(waitMs: () => number, work: () => unknown): void {
    this.loops.push(this.loop(waitMs, work));
  }

  /** Resolves after `ms` milliseconds, or at the end. */
  async rest(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.end.signal }).catch(() => undefined);
  }

  /** Waits for work in progress. @throws the first fault; later work does not start */
  async over(): Promise<void> {
    this.end.abort();
    await Promise.all(this.loops);
    if (this.fault) throw this.fault;
  }

  private async loop(waitMs: () => number, work: () => unknown): Promise<void> {
    let due = performance.now();
    while (!this.isOver) {
      due = Math.max(due + waitMs(), performance.now() - CATCH_UP_MS);
      await this.rest(due - performance.now());
      if (this.isOver) return;
      try {
        await work();
      } catch (error) {
        this.fault ??= error;
        this.end.abort();
      }
    }
  }
}
