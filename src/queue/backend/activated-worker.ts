import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { type BackendFactory, type IQueueBackend, type Job, Worker, type WorkerOptions } from 'bullmq';
import { within } from '../../config/within.js';
import { errorTrace, failureCode } from '../../http/problem/error-trace.js';
import type { Notification } from './queue-names.js';

/** How long a worker waits after a failed fetch. BullMQ would fetch again in the same turn of the event loop. */
const FAILED_FETCH_MS = 1_000;

/** Timeout for the end of a worker without work, which BullMQ delays until its store is available. */
const CLOSE_MS = 300;

/** Timeout for releasing a deduplication key. Short, because work and shutdown wait for it. */
const RELEASE_TIMEOUT_MS = 500;

const IDLE = {
  // How long an idle worker waits for a job before it asks. The usual five seconds cost an idle process too much CPU.
  drainDelay: 10,
  // How often to look for jobs of killed workers, which are only clutter, because their rows become due again.
  stalledInterval: 5 * 60_000,
  runRetryDelay: FAILED_FETCH_MS,
};

/** Minimum time between two log lines about failed activations of a worker. */
const QUIET_MS = 60_000;

/** A BullMQ worker that neither spins nor hangs while its store fails. */
export class ActivatedWorker {
  private readonly worker: Worker<Notification, void, string, IQueueBackend>;
  private readonly log: Logger;
  private readonly inProgress = new Set<Promise<void>>();
  private quietUntilMs = 0;

  /** @param failed called with each error of the store */
  constructor(
    name: string,
    private readonly activate: (job: Job<Notification>) => Promise<unknown>,
    options: WorkerOptions,
    factory: BackendFactory,
    failed: (error: Error) => void,
  ) {
    this.log = new Logger(`Worker ${name}`);
    const work = (job: Job<Notification>) => this.process(job);
    this.worker = new Worker(name, work, { ...IDLE, ...options }, patient(factory));
    this.worker.on('error', failed);
  }

  /** Pauses all workers of the queue. */
  async rateLimit(ms: number): Promise<void> {
    await this.worker.rateLimit(ms);
  }

  /** Ends after the activations in progress, regardless of the store. */
  async close(): Promise<void> {
    const closed = this.worker.close().catch(() => undefined);
    await Promise.allSettled(this.inProgress);
    await within(CLOSE_MS, closed, () => this.cut()).catch(() => undefined);
  }

  /** Ends the timers and connections of a worker that cannot close. */
  private async cut(): Promise<void> {
    await Promise.all([this.worker.pause(true), Reflect.get(this.worker, 'lockManager').close()]);
    await this.worker.getBackend().close(true);
  }

  private process(job: Job<Notification>): Promise<void> {
    const work = this.run(job).finally(() => this.inProgress.delete(work));
    this.inProgress.add(work);
    return work;
  }

  /** Releases the deduplication key first, so that a notification during the work is kept. */
  private async run(job: Job<Notification>): Promise<void> {
    await within(RELEASE_TIMEOUT_MS, job.removeDeduplicationKey(), () => false).catch(() => false);
    try {
      await this.activate(job);
    } catch (error) {
      this.logFailure(error);
      // The queue keeps only a code, because a message or stack may quote a row.
      throw Object.assign(new Error(failureCode(error)), { stack: '' });
    }
  }

  /** A failed activation loses nothing, because its row is still due. */
  private logFailure(error: unknown): void {
    if (performance.now() < this.quietUntilMs) return;
    this.quietUntilMs = performance.now() + QUIET_MS;
    this.log.warn({ msg: 'an activation failed; the poller notifies again', ...errorTrace(error) });
  }
}

/** Makes BullMQ wait after each failed fetch. Otherwise nothing else runs in the process, not even its shutdown. */
function patient(factory: BackendFactory): BackendFactory {
  return (...parts) => {
    const backend = factory(...parts);
    for (const fetch of ['moveToActive', 'waitForJob'] as const) {
      const original = backend[fetch].bind(backend) as (...args: unknown[]) => Promise<never>;
      backend[fetch] = (...args: unknown[]) =>
        original(...args).catch(async (error: unknown) => {
          await delay(FAILED_FETCH_MS);
          throw error;
        });
    }
    return backend;
  };
}
