import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { within } from '../../config/within.js';
import { retryUntilStored } from '../../database/retries.js';
import { errorTrace } from '../../http/problem/error-trace.js';

/** Milliseconds for which whoever submitted waits until the outcome is stored. */
const PATIENCE_MS = 5_000;

/** Milliseconds that a shutdown waits for submissions, after the grace that the HTTP server gives. */
const SHUTDOWN_MS = 8_000;

/**
 * Stores what became of submissions. Only this process knows it, so it is held on to while the database is away; whoever
 * submitted waits for that a while only, and a shutdown does too.
 */
@Injectable()
export class SubmissionOutcomes implements OnApplicationShutdown {
  private readonly log = new Logger(SubmissionOutcomes.name);
  private readonly underWay = new Set<Promise<unknown>>();
  private readonly givingUp = new AbortController();

  constructor(private readonly clock: Clock) {}

  /** Has a shutdown wait for work whose outcome nobody else would know. */
  follow<T>(work: Promise<T>): Promise<T> {
    const ended = work.catch(() => undefined).finally(() => this.underWay.delete(ended));
    this.underWay.add(ended);
    return work;
  }

  /**
   * Stores an outcome.
   *
   * @param ids of the job, so that the log says which one a person has to settle when it could not be stored
   * @param store must bear to be run again
   * @returns false when it is not stored yet; it is held on to
   */
  async keep(ids: { job: string; jobId?: string }, store: () => Promise<void>): Promise<boolean> {
    const stored = retryUntilStored(store, this.clock, (ms) =>
      delay(ms, undefined, { signal: this.givingUp.signal }),
    ).then(
      () => true,
      (error: unknown) => {
        this.log.error({ msg: 'the outcome of a compliance submission is lost', ...ids, ...errorTrace(error) });
        return false;
      },
    );
    return within(PATIENCE_MS, this.follow(stored), () => false);
  }

  async onApplicationShutdown(): Promise<void> {
    await within(SHUTDOWN_MS, this.settled(), () => undefined);
    this.givingUp.abort();
  }

  /** What is followed may itself begin to store something. */
  private async settled(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay);
  }
}
