import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { type IQueueBackend, Queue, type RateLimiterOptions } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { withTimeout } from '../../config/with-timeout.js';
import { type Health, healthOf } from '../../monitoring/health-indicator.js';
import { ActivatedWorker } from './activated-worker.js';
import { checkQueueTables, createQueueTables, postgresBackend } from './postgres.js';
import { QUEUE_NAMES, type QueueName } from './queue-names.js';
import { checkRedis, redisBackend } from './redis.js';
import type { StoreBackend } from './store-backend.js';
import { namesCause, type StoreSetting, storeFault } from './store-fault.js';

/** Timeout for an answer of the store. */
const ANSWER_MS = 1_500;

/** How long answers may be late before it is a fault. A busy machine answers late, too, and its work continues. */
const MAX_SILENCE_MS = 5_000;

/** Timeout for the end of each queue and of the connections. */
const CLOSE_MS = 300;

/** How long equal notifications are dropped. Short, because the worker that took the first may have been killed. */
const DEDUPLICATION_MS = 1_000;

/** How long an answering store counts as unavailable after a failure. Longer than workers wait between two fetches. */
const CALM_MS = 2_000;

/** Minimum time between two log lines about an unavailable store. */
const REMINDER_MS = 60_000;

const LATE = Symbol('late');

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
  await (ownerUrl === undefined ? checkQueueTables(env.DATABASE_URL) : createQueueTables(ownerUrl));
  return [];
}

/** The queues, on one store. Loses nothing, because jobs only notify. */
@Injectable()
export class QueueStore implements OnApplicationShutdown {
  private readonly log = new Logger(QueueStore.name);
  private readonly backend: StoreBackend;
  private readonly setting: StoreSetting;
  private readonly queues: ReadonlyMap<string, NotificationQueue>;
  /** The fault of the store, in a sentence. Undefined while the store is available. */
  private fault: { readonly sentence: string; readonly since: Date } | undefined;
  private failedAtMs = 0;
  /** The start of the first late answer since one came in time. */
  private lateSinceMs: number | undefined;
  private quietUntilMs = Number.NEGATIVE_INFINITY;
  private isClosed = false;

  constructor(
    env: StoreEnv,
    private readonly clock: Clock,
  ) {
    this.backend = openBackend(env);
    this.setting = env.REDIS_URL ? 'REDIS_URL' : 'DATABASE_URL';
    this.queues = new Map([...QUEUE_NAMES, 'probe'].map((name) => [name, this.open(name)]));
  }

  /**
   * Adds a job, unless one waits; a delayed one is replaced. Never rejects, because the poller notifies again. The worker
   * releases the deduplication key before it works.
   */
  async add(name: QueueName, delayMs: number): Promise<void> {
    const ttl = Math.ceil(delayMs) + DEDUPLICATION_MS;
    const deduplication = { id: 'next', replace: true, extend: true, ttl };
    await this.answered(this.queues.get(name)?.add('notify', {}, { delay: delayMs, deduplication }));
  }

  /** Calls `activate` for each job of a queue, until the worker is closed. */
  work(
    name: QueueName,
    activate: () => Promise<unknown>,
    options: { concurrency?: number; limiter?: RateLimiterOptions } = {},
  ): ActivatedWorker {
    return new ActivatedWorker(name, activate, { ...this.backend.options, ...options }, this.backend.factory, (error) =>
      this.failed(error),
    );
  }

  /** Writes to the store, because without notifications nothing else shows that it is unavailable. */
  async health(): Promise<Health> {
    // As a notification does, but the one job of this queue has no worker.
    await this.answered(this.queues.get('probe')?.add('probe', {}, { jobId: 'probe' }));
    if (!this.fault) return { status: 'ok' };
    const { sentence, since } = this.fault;
    // Without Redis, PostgreSQL is the store, so that its fault is the cause.
    const values = { fault: sentence, setting: this.setting };
    return healthOf([{ code: 'queue-unavailable', values, follows: true, since }]);
  }

  async onApplicationShutdown(): Promise<void> {
    this.isClosed = true;
    const closing = Promise.all([...this.queues.values()].map((queue) => queue.close()));
    await withTimeout(closing, CLOSE_MS, () => undefined).catch(() => undefined);
    await withTimeout(this.backend.close(), CLOSE_MS, () => undefined).catch(() => undefined);
  }

  private open(name: string): NotificationQueue {
    const { options, factory } = this.backend;
    const queue: NotificationQueue = new Queue(
      name,
      { ...options, defaultJobOptions: { removeOnComplete: true } },
      factory,
    );
    queue.on('error', (error) => this.failed(error));
    return queue;
  }

  /** Records whether the store answers. */
  private async answered(answer: Promise<unknown> | undefined): Promise<void> {
    const startedAtMs = this.clock.monotonicMs();
    try {
      if ((await withTimeout(answer, ANSWER_MS, () => LATE)) === LATE) return this.late(startedAtMs);
    } catch (error) {
      return this.failed(error);
    }
    this.lateSinceMs = undefined;
    if (!this.fault || this.clock.monotonicMs() - this.failedAtMs < CALM_MS) return;
    this.fault = undefined;
    this.log.log('the queues are available again');
  }

  private late(startedAtMs: number): void {
    this.lateSinceMs ??= startedAtMs;
    if (this.fault || this.clock.monotonicMs() - this.lateSinceMs >= MAX_SILENCE_MS)
      this.failed(new Error('no answer'));
  }

  /** Records that the store failed, and logs it at most once a minute, because all connections report it. */
  private failed(error: unknown): void {
    if (this.isClosed) return;
    const nowMs = this.clock.monotonicMs();
    this.failedAtMs = nowMs;
    const since = this.fault?.since ?? this.clock.now();
    if (!this.fault || namesCause(error)) this.fault = { sentence: storeFault(error, this.setting), since };
    if (nowMs < this.quietUntilMs) return;
    this.quietUntilMs = nowMs + REMINDER_MS;
    this.log.warn({ msg: `${this.fault.sentence} Work continues more slowly, by polling`, since: since.toISOString() });
  }
}
