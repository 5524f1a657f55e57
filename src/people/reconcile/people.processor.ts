import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnApplicationBootstrap, OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { RateLimiterRepository } from '../../platform/rate-limit/rate-limiter.repository.js';
import { type Notification, USER_MANAGEMENT_QUEUE } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/deduplication-key.js';
import { Poller } from '../../queue/notifier/poller.js';
import { Reconciler } from './reconciler.js';

/** Calls that one process may have under way: a slow platform must not keep the budget unused. */
const CONCURRENCY = 24;

/** Milliseconds between two looks for people whom the queue forgot. */
const POLL_MS = 1_000;

/** Milliseconds between two looks for people whom a change that overlapped left waiting. */
const OVERLOOKED_MS = 10_000;

/** Activations that BullMQ's own limiter lets through for each call of the limit: the outer guard, never the limit. */
const ACTIVATIONS_PER_CALL = 4;

/** Dispatches the notifier of user management: one activation, at most one HTTP attempt. */
@Processor(USER_MANAGEMENT_QUEUE, { concurrency: CONCURRENCY })
export class PeopleProcessor extends WorkerHost implements OnModuleInit, OnApplicationBootstrap, OnModuleDestroy {
  constructor(
    private readonly mirror: Reconciler,
    private readonly poller: Poller,
    private readonly calls: RateLimiterRepository,
  ) {
    super();
  }

  onModuleInit(): void {
    this.poller.every(POLL_MS, 'people', () => this.mirror.poll());
    this.poller.every(POLL_MS, 'clients of new providers', () => this.mirror.requeueClients());
    this.poller.every(OVERLOOKED_MS, 'overlooked people', () => this.mirror.requeueOverlooked());
  }

  onApplicationBootstrap(): void {
    const { calls, windowMs } = this.calls.limit;
    this.worker.opts.limiter = { max: calls * ACTIVATIONS_PER_CALL, duration: windowMs };
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.mirror.answerBell();
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
