import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { withTimeout } from '../../config/with-timeout.js';
import { retryUntilStored } from '../../database/retries.js';
import { errorTrace } from '../../errors/error-trace.js';

/** How long a shutdown waits for outcomes, in addition to the grace period of the HTTP server. */
const SHUTDOWN_MS = 8_000;

/**
 * Retries until the outcome of an attempt is stored, because only this process knows it. A shutdown waits for a while.
 */
@Injectable()
export class OutcomeWriter implements OnApplicationShutdown {
  private readonly log = new Logger(OutcomeWriter.name);
  private readonly pending = new Set<Promise<unknown>>();
  private readonly givingUp = new AbortController();

  constructor(private readonly clock: Clock) {}

  /**
   * Stores an outcome.
   *
   * @param ids of the request, so that the log names the one to resolve if its outcome cannot be stored
   * @param write may run more than once
   * @returns false if it could not be stored
   */
  writeUntilStored(ids: Record<string, string>, write: () => Promise<unknown>): Promise<boolean> {
    const stored = retryUntilStored(write, this.clock, (ms) =>
      delay(ms, undefined, { signal: this.givingUp.signal }),
    ).then(
      () => true,
      (error: unknown) => {
        this.log.error({ msg: 'the outcome of an attempt is lost', ...ids, ...errorTrace(error) });
        return false;
      },
    );
    const ended: Promise<unknown> = stored.finally(() => this.pending.delete(ended));
    this.pending.add(ended);
    return stored;
  }

  async onApplicationShutdown(): Promise<void> {
    await withTimeout(this.ended(), SHUTDOWN_MS, () => undefined);
    this.givingUp.abort();
  }

  /** Loops because tracked work can start further writes. */
  private async ended(): Promise<void> {
    while (this.pending.size > 0) await Promise.all(this.pending);
  }
}
