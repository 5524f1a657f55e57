import { setMaxListeners } from 'node:events';
import { WorkerHost } from '@nestjs/bullmq';
import {
  type BeforeApplicationShutdown,
  Inject,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
  type OnModuleDestroy,
} from '@nestjs/common';
import type { Job, RateLimiterOptions, WorkerOptions } from 'bullmq';
import { Stopping } from '../../config/stopping.js';
import { isDatabaseUnavailable, isStatementTimeout } from '../../errors/database-fault.js';
import { errorTrace } from '../../errors/error-trace.js';
import type { WorkQueue } from './work-queue.js';
import { type RowJob, WorkStore } from './work-store.js';

/**
 * The options of every `@Processor`. The worker starts in `onApplicationBootstrap`. A job whose process was killed runs again
 * within eleven seconds. An idle worker asks for jobs every ten seconds, because the usual five cost too much CPU.
 */
export const WORKER = {
  autorun: false,
  lockDuration: 5_000,
  stalledInterval: 5_000,
  drainDelay: 10,
  runRetryDelay: 1_000, // after a lost connection; usually 15 s
  skipVersionCheck: true, // needs INFO; the start has checked the version
} satisfies Partial<WorkerOptions>;

/** What a setting decides about a worker, because the options of `@Processor` are constants. */
export interface WorkerLimits {
  /** Maximum jobs in progress in this process. */
  readonly concurrency: number;
  readonly limiter?: RateLimiterOptions;
}

/** A processor whose jobs name rows. A row whose work throws stops no other. */
@Injectable()
export abstract class Host
  extends WorkerHost
  implements OnApplicationBootstrap, OnModuleDestroy, BeforeApplicationShutdown
{
  protected readonly log = new Logger(this.constructor.name);
  @Inject(Stopping)
  private readonly stopping!: Stopping;
  /** Aborts at shutdown what can be aborted. */
  protected readonly shutdown = new AbortController();

  protected constructor(
    private readonly store: WorkStore,
    protected readonly queue: WorkQueue,
    private readonly limits: WorkerLimits,
  ) {
    super();
    // Each call in progress listens to it, and Node would warn of a leak.
    setMaxListeners(0, this.shutdown.signal);
  }

  /**
   * Works on a row. It may run twice at a time, because a stalled process lives on, so it is idempotent by its row.
   *
   * @returns true if the row is due again at once
   */
  protected abstract work(id: string): Promise<boolean>;

  /** Stores that the work on a row threw an error: `failures + 1`, and when it is due again (`backoff`). */
  protected abstract postpone(id: string, error: unknown): Promise<void>;

  /** What the log shows of a row. */
  protected logged(id: string): object {
    return { row: id };
  }

  onApplicationBootstrap(): void {
    const { worker } = this;
    worker.concurrency = this.limits.concurrency;
    if (this.limits.limiter) worker.opts.limiter = this.limits.limiter;
    worker.on('error', (error) => this.store.failed(error));
    worker.run().catch((error: unknown) => this.store.failed(error));
  }

  /** Nest awaits one module after the other. So all workers begin to close before the first one is awaited. */
  onModuleDestroy(): void {
    this.shutdown.abort();
    void this.worker.close();
  }

  /** Before Nest closes the connections, because an add from inside an active job would never settle. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.worker.close();
  }

  /** Never fails the job, because a store that kept the error would keep what its message quotes. */
  override async process({ data: { id } }: Job<RowJob>): Promise<void> {
    // The requests in progress end before the workers close. Another process adds the row again.
    if (this.stopping.isShuttingDown) return;
    try {
      // Within the job, so that BullMQ starts it once more after this run, and never beside it.
      if (await this.work(id)) await this.queue.add(id);
    } catch (error) {
      // The row is not to blame for a database that is away, and is due again soon. A statement that takes too long may be.
      if (isDatabaseUnavailable(error) && !isStatementTimeout(error)) return;
      this.log.error({
        msg: 'the work on a row failed; it is tried again later',
        ...this.logged(id),
        ...errorTrace(error),
      });
      await this.postpone(id, error).catch(() => undefined);
    }
  }
}
