import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { type IQueueBackend, Queue, type RateLimiterOptions } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { within } from '../../config/within.js';
import { type Health, healthOf } from '../../http/server/health-indicator.js';
import { ActivatedWorker } from './activated-worker.js';
import { checkQueueTables, createQueueTables, postgresBackend } from './postgres.js';
import { QUEUE_NAMES, type QueueName } from './queue-names.js';
import { checkRedis, redisBackend } from './redis.js';
import type { StoreBackend } from './store-backend.js';
import { StoreWatch } from './store-watch.js';

/** Timeout for an answer of the store. */
const ANSWER_MS = 1_500;

/** Timeout for the end of each queue and of the connections. */
const CLOSE_MS = 300;

/** How long equal notifications are dropped. Short, because the worker that took the first may have been killed. */
const DEDUPLICATION_MS = 1_000;

type NotificationQueue = Queue<object, void, string, object, void, string, IQueueBackend>;
type StoreEnv = Pick<Env, 'REDIS_URL' | 'DATABASE_URL' | 'QUEUE_PREFIX'>;

/** Redis if REDIS_URL is set, otherwise PostgreSQL. */
export const openBackend = ({ REDIS_URL, DATABASE_URL = '', QUEUE_PREFIX }: StoreEnv): StoreBackend =>
  REDIS_URL ? redisBackend(REDIS_URL, QUEUE_PREFIX) : postgresBackend(DATABASE_URL);

/**
 * Prepares the store of the queues at start.
 *
 * @param ownerUrl of a role that may create tables; undefined without one
 * @returns warnings
 * @throws {Error} if the queues cannot use the store
 */
export async function prepareQueueStore(env: StoreEnv, ownerUrl: string | undefined): Promise<string[]> {
  if (env.REDIS_URL) return checkRedis(env);
  await (ownerUrl === undefined ? checkQueueTables(env.DATABASE_URL ?? '') : createQueueTables(ownerUrl));
  return [];
}

/** The queues, on one store. Loses nothing, because jobs only notify. */
@Injectable()
export class QueueStore implements OnApplicationShutdown {
  private readonly backend: StoreBackend;
  private readonly queues: ReadonlyMap<string, NotificationQueue>;
  private readonly watch: StoreWatch;

  constructor(env: StoreEnv, clock: Clock) {
    this.backend = openBackend(env);
    this.watch = new StoreWatch(() => this.probe(), clock);
    this.queues = new Map([...QUEUE_NAMES, 'probe'].map((name) => [name, this.open(name)]));
  }

  /**
   * Adds a job, unless one waits; a delayed one is replaced. Never rejects, because the poller notifies again. The worker
   * releases the deduplication key before it works.
   */
  async add(name: QueueName, delayMs: number): Promise<void> {
    const ttl = Math.ceil(delayMs) + DEDUPLICATION_MS;
    const deduplication = { id: 'next', replace: true, extend: true, ttl };
    const added = this.queues.get(name)?.add('notify', {}, { delay: delayMs, deduplication });
    await within(ANSWER_MS, added, noAnswer).catch((error: unknown) => this.watch.failed(error));
  }

  /** Calls `activate` for each job of a queue, until the worker is closed. */
  work(
    name: QueueName,
    activate: () => Promise<unknown>,
    options: { concurrency?: number; limiter?: RateLimiterOptions } = {},
  ): ActivatedWorker {
    return new ActivatedWorker(name, activate, { ...this.backend.options, ...options }, this.backend.factory, (error) =>
      this.watch.failed(error),
    );
  }

  /** Probes the store, because without notifications nothing else shows that it is unavailable. */
  async health(): Promise<Health> {
    if (!this.watch.fault) await this.probe().catch((error: unknown) => this.watch.failed(error));
    const { fault, since } = this.watch;
    if (!fault) return { status: 'ok' };
    // Without Redis, PostgreSQL is the store, so that its fault is the cause.
    return healthOf([{ code: 'queue-unavailable', values: { fault }, follows: true, ...(since && { since }) }]);
  }

  async onApplicationShutdown(): Promise<void> {
    this.watch.stop();
    const closing = Promise.all([...this.queues.values()].map((queue) => queue.close()));
    await within(CLOSE_MS, closing, () => undefined).catch(() => undefined);
    await within(CLOSE_MS, this.backend.close(), () => undefined).catch(() => undefined);
  }

  /** Writes to the store as a notification does. The one job of this queue has no worker. */
  private async probe(): Promise<void> {
    const probed = this.queues.get('probe')?.add('probe', {}, { jobId: 'probe' });
    await within(ANSWER_MS, probed, noAnswer);
  }

  private open(name: string): NotificationQueue {
    const { options, factory } = this.backend;
    const queue: NotificationQueue = new Queue(
      name,
      { ...options, defaultJobOptions: { removeOnComplete: true } },
      factory,
    );
    queue.on('error', (error) => this.watch.failed(error));
    return queue;
  }
}

function noAnswer(): never {
  throw new Error('no answer');
}
