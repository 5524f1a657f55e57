import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import type { Job } from 'bullmq';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { type Notification, USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/queue-notifier.js';
import { Reconciler } from './reconciler.js';

/** Maximum calls in flight per process. High enough that a slow platform leaves no budget unused. */
const CONCURRENCY = 24;

/** Activations that BullMQ's limiter admits per permitted call. It is only the outer guard; PostgreSQL keeps the limit. */
const ACTIVATIONS_PER_CALL = 4;

/** Activates the reconciler when its queue is notified. */
@Processor(USER_MANAGEMENT_QUEUE, { concurrency: CONCURRENCY })
export class PeopleProcessor extends WorkerHost implements OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    private readonly reconciler: Reconciler,
    private readonly calls: RateLimiterRepository,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    const { calls, windowMs } = this.calls.limit;
    this.worker.opts.limiter = { max: calls * ACTIVATIONS_PER_CALL, duration: windowMs };
  }

  /** Releases the deduplication key first, so that a notification during the work is kept. */
  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.reconciler.activate();
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
