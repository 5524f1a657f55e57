import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import type { ActivatedWorker } from '../../queue/backend/activated-worker.js';
import { USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueStore } from '../../queue/backend/queue-store.js';
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
@Injectable()
export class PeopleProcessor implements OnApplicationBootstrap, OnModuleDestroy {
  private worker: ActivatedWorker | undefined;

  constructor(
    private readonly store: QueueStore,
    private readonly reconciler: Reconciler,
    private readonly calls: RateLimiterRepository,
  ) {}

  onApplicationBootstrap(): void {
    const { calls, windowMs } = this.calls.limit;
    const limiter = { max: calls * ACTIVATIONS_PER_CALL, duration: windowMs };
    this.worker = this.store.work(USER_MANAGEMENT_QUEUE, () => this.activate(), { concurrency: CONCURRENCY, limiter });
  }

  private async activate(): Promise<void> {
    const pauseMs = await this.reconciler.activate();
    if (pauseMs > 0) await this.worker?.rateLimit(pauseMs);
  }

  async onModuleDestroy(): Promise<void> {
    this.reconciler.stop();
    await this.worker?.close();
  }
}
