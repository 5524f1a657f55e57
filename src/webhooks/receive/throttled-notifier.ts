/** Minimum time between two notifications. Under load, one activates a worker for many commits. */
export const NOTIFY_INTERVAL_MS = 50;

/** Sends the first notification immediately, and later ones together at the end of the interval. */
export class ThrottledNotifier {
  private timer: NodeJS.Timeout | undefined;
  private isPending = false;

  constructor(private readonly send: () => void) {}

  notify(): void {
    this.isPending = true;
    if (!this.timer) this.sendPending();
  }

  /** Sends what is pending, and nothing after it. */
  close(): void {
    clearTimeout(this.timer);
    if (this.isPending) this.send();
  }

  private sendPending(): void {
    this.timer = undefined;
    if (!this.isPending) return;
    this.isPending = false;
    this.send();
    this.timer = setTimeout(() => this.sendPending(), NOTIFY_INTERVAL_MS);
  }
}
