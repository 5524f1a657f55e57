import { setImmediate } from 'node:timers/promises';

/** Work after which the event loop is given to others: a few milliseconds on a slow machine. */
export const PAUSE_EVERY = 64 * 1024;

/** What an event costs beside its characters, in characters: short rows are checked and stored as long ones are. */
export const EVENT_COST = 64;

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

  get isPauseDue(): boolean {
    return this.stretch >= PAUSE_EVERY;
  }

  async pause(): Promise<void> {
    this.longest = Math.max(this.longest, this.stretch);
    this.stretch = 0;
    await setImmediate();
  }
}
