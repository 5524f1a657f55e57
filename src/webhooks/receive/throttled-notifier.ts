/** Milliseconds between two notifications at most: under load one wakes a worker for many commits. */
export const NOTIFY_EVERY_MS = 250;

/** Notifies at once when it was quiet, and otherwise once at the end of the interval, however often it is asked. */
export class ThrottledNotifier {
  private timer: NodeJS.Timeout | undefined;
  private pending = false;

  constructor(private readonly send: () => void) {}

  notify(): void {
    if (this.timer) {
      this.pending = true;
      return;
    }
    this.send();
    this.timer = setTimeout(() => {
      this.timer = undefined;
      if (!this.pending) return;
      this.pending = false;
      this.notify();
    }, NOTIFY_EVERY_MS);
  }

  /** Sends what is pending, and nothing after it. */
  close(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.pending) this.send();
    this.pending = false;
  }
}
