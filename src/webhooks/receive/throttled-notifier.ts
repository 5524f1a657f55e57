/** Milliseconds between two rings at most: under load one ring wakes a worker for many commits. */
export const RING_EVERY_MS = 250;

/** Rings at once when it was quiet, and otherwise once at the end of the interval, however often it is pulled. */
export class CommitBell {
  private timer: NodeJS.Timeout | undefined;
  private pulled = false;

  constructor(private readonly ring: () => void) {}

  pull(): void {
    if (this.timer) {
      this.pulled = true;
      return;
    }
    this.ring();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (!this.pulled) return;
      this.pulled = false;
      this.pull();
    }, RING_EVERY_MS);
  }

  /** Rings for the last time if a ring is owed. */
  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.pulled) this.ring();
    this.pulled = false;
  }
}
