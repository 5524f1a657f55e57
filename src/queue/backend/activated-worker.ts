import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { type BackendFactory, type IQueueBackend, type Job, Worker, type WorkerOptions } from 'bullmq';
import { withTimeout } from '../../config/with-timeout.js';
import { errorTrace } from '../../errors/error-trace.js';

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
  private readonly worker: Worker<object, void, string, IQueueBackend>;
  private readonly log: Logger;
  private readonly inProgress = new Set<Promise<void>>();
  private quietUntilMs = 0;

  /** @param failed called with each error of the store */
  constructor(
    name: string,
    private readonly activate: () => Promise<unknown>,
    options: WorkerOptions,
    factory: BackendFactory,
    failed: (error: Error) => void,
  ) {
    this.log = new Logger(`Worker ${name}`);
    this.worker = new Worker(name, (job: Job) => this.process(job), { ...IDLE, ...options }, patient(factory));
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
    await withTimeout(closed, CLOSE_MS, () => this.cut()).catch(() => undefined);
  }

  /** Ends the timers and connections of a worker that cannot close. Otherwise they would keep the process running. */
  private async cut(): Promise<void> {
    await Promise.all([this.worker.pause(true), Reflect.get(this.worker, 'lockManager').close()]);
    await this.worker.getBackend().close(true);
  }

  private process(job: Job): Promise<void> {
    const work = this.run(job).finally(() => this.inProgress.delete(work));
    this.inProgress.add(work);
    return work;
  }

  /** Never fails the job, because a queue that kept the error would keep what its message quotes. */
  private async run(job: Job): Promise<void> {
    // First, so that a notification during the work is kept.
    await withTimeout(job.removeDeduplicationKey(), RELEASE_TIMEOUT_MS, () => false).catch(() => false);
    await this.activate().catch((error: unknown) => {
      if (performance.now() < this.quietUntilMs) return;
      this.quietUntilMs = performance.now() + QUIET_MS;
      this.log.warn({ msg: 'an activation failed; the poller notifies again', ...errorTrace(error) });
    });
  }
}

/** Makes BullMQ wait after each failed fetch. Otherwise nothing else runs in the process, not even its shutdown. */
function patient(factory: BackendFactory): BackendFactory {
  return (...parts) => {
    const backend = factory(...parts);
    const fetch = backend.moveToActive.bind(backend) as (...args: unknown[]) => Promise<never>;
    backend.moveToActive = (...args: unknown[]) =>
      fetch(...args).catch(async (error: unknown) => {
        await delay(FAILED_FETCH_MS);
        throw error;
      });
    return backend;
  };
}
