import { setImmediate } from 'node:timers/promises';

/** Work after which the event loop is given to others: a few milliseconds on a slow machine. */
export const PAUSE_EVERY = 64 * 1024;

/** What an event costs beside its characters, in characters: short rows are checked and stored as long ones are. */
export const EVENT_COST = 64;

/** What a line costs beside its characters, in characters, also one that is blank. */
export const LINE_COST = 8;

/** Counts what reading a file costs, in characters that were looked at, and yields to the event loop meanwhile. */
export class WorkMeter {
  /** Since the beginning. */
  total = 0;
  /** The longest stretch without a pause. */
  longest = 0;
  private stretch = 0;

  spend(characters: number): void {
    this.total += characters;
    this.stretch += characters;
  }

  /** The same items; between two of them the event loop goes round when enough was done. @param cost of each item */
  async *pacing<T>(items: AsyncIterable<T>, cost: number): AsyncGenerator<T> {
    for await (const item of items) {
      this.spend(cost);
      if (this.stretch >= PAUSE_EVERY) await this.pause();
      yield item;
    }
  }

  private async pause(): Promise<void> {
    this.longest = Math.max(this.longest, this.stretch);
    this.stretch = 0;
    await setImmediate();
  }
}
