import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { retryUntilStored } from '../../database/retries.js';
import { errorTrace } from '../../http/problem/error-trace.js';

/** Milliseconds that a shutdown waits for attempts, after the grace that the HTTP server gives. */
const SHUTDOWN_MS = 8_000;

/** Stores what attempts came to. Only this process knows it, so it is tried until it is stored; a shutdown waits a while. */
@Injectable()
export class OutcomeKeeper implements OnApplicationShutdown {
  private readonly log = new Logger(OutcomeKeeper.name);
  private readonly underWay = new Set<Promise<unknown>>();
  private readonly givingUp = new AbortController();

  constructor(private readonly clock: Clock) {}

  /** Has a shutdown wait for work whose outcome is known here alone. */
  follow<T>(work: Promise<T>): Promise<T> {
    const ended = work.catch(() => undefined).finally(() => this.underWay.delete(ended));
    this.underWay.add(ended);
    return work;
  }

  /**
   * Stores an outcome.
   *
   * @param ids of the request, so that the log says which one to resolve when its outcome could not be stored
   * @param store may be run again
   * @returns false when it could not be stored
   */
  keep(ids: Record<string, string>, store: () => Promise<void>): Promise<boolean> {
    const stored = retryUntilStored(store, this.clock, (ms) =>
      delay(ms, undefined, { signal: this.givingUp.signal }),
    ).then(
      () => true,
      (error: unknown) => {
        this.log.error({ msg: 'the outcome of an attempt is lost', ...ids, ...errorTrace(error) });
        return false;
      },
    );
    return this.follow(stored);
  }

  async onApplicationShutdown(): Promise<void> {
    await within(SHUTDOWN_MS, this.ended(), () => undefined);
    this.givingUp.abort();
  }

  /** What is followed may itself begin to store something. */
  private async ended(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay);
  }
}
