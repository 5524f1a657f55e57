import { Logger } from '@nestjs/common';
import type { Clock } from '../../config/clock.js';
import { isStoreReply, storeFault } from './store-fault.js';

/** How often to probe an unavailable store. It is available after an answer and as long without a failure. */
const PROBE_EVERY_MS = 1_000;

/** Minimum time between two log lines about an unavailable store. */
const REMINDER_MS = 60_000;

/** How long a reply of the store explains later failures, which may only follow from it. */
const REPLY_EXPLAINS_MS = 10_000;

/**
 * Tracks whether the store of the queues is available, and logs it once per process: when it becomes unavailable, every
 * minute until it is available, and then.
 */
export class StoreWatch {
  /** What is wrong, in a sentence; undefined while the store is available. */
  fault: string | undefined;
  since: Date | undefined;
  private readonly log = new Logger(StoreWatch.name);
  private failedAtMs = 0;
  private repliedAtMs = Number.NEGATIVE_INFINITY;
  private quietUntilMs = Number.NEGATIVE_INFINITY;
  private isLogged = false;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(
    private readonly probe: () => Promise<void>,
    private readonly clock: Pick<Clock, 'now' | 'monotonicMs'>,
  ) {}

  /** Records that the store failed. */
  failed(error: unknown): void {
    if (this.isStopped) return;
    this.failedAtMs = this.clock.monotonicMs();
    if (isStoreReply(error)) this.repliedAtMs = this.failedAtMs;
    if (!this.fault || isStoreReply(error) || this.failedAtMs - this.repliedAtMs > REPLY_EXPLAINS_MS)
      this.fault = storeFault(error);
    this.since ??= this.clock.now();
    this.timer ??= this.probeLater();
    if (this.failedAtMs < this.quietUntilMs) return;
    this.quietUntilMs = this.failedAtMs + REMINDER_MS;
    this.isLogged = true;
    this.log.warn({ msg: `${this.fault} Work continues more slowly, by polling`, since: this.since.toISOString() });
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private probeLater(): NodeJS.Timeout {
    return setTimeout(() => void this.look(), PROBE_EVERY_MS).unref();
  }

  private async look(): Promise<void> {
    await this.probe().catch((error: unknown) => this.failed(error));
    if (this.isStopped) return;
    const isBack = this.clock.monotonicMs() - this.failedAtMs >= PROBE_EVERY_MS;
    this.timer = isBack ? undefined : this.probeLater();
    if (!isBack) return;
    this.fault = undefined;
    this.since = undefined;
    if (this.isLogged) this.log.log('the store of the queues is available again');
    this.isLogged = false;
  }
}
