import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import type { Job } from 'bullmq';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { type Notification, USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/queue-notifier.js';
import { CONCURRENCY, Reconciler } from './reconciler.js';

/**
 * Activations that the limiter allows per call of the limit. With a factor of 1, bulk calls use the whole budget (99.6 %,
 * `npm run bench -- budget`), but each activation that finds no one due takes the turn of a call, so that a person in
 * front of a screen waited up to 2.8 s for the limiter's next window.
 */
const ACTIVATIONS_PER_CALL = 2;

/**
 * The rate-limited queue of user management: one activation is at most one call. Its limiter is a fixed window over
 * activations, so PostgreSQL keeps the exact sliding window (src/platform/rate-limit).
 */
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
    const pauseMs = await this.reconciler.activate();
    if (pauseMs > 0) await this.worker.rateLimit(pauseMs);
  }

  async onModuleDestroy(): Promise<void> {
    this.reconciler.stop();
    await this.worker.close();
  }
}
