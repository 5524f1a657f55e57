import { createRedisBackend, Queue, RedisConnection, setDefaultBackendFactory } from 'bullmq';
import { Redis, type RedisOptions } from 'ioredis';
import type { Clock } from '../../config/clock.js';
import { OLDEST_VERSION } from '../backend/check-redis.js';
import { CalmWorker } from './calm-worker.js';
import { ADD_TIMEOUT_MS } from './work-queue.js';
import { type JobQueue, type RowJob, WorkStore } from './work-store.js';

// BullMQ uses the features of this version without asking, because a user without INFO cannot ask.
RedisConnection.minimumVersion = OLDEST_VERSION;

/**
 * How long a connection may wait for an answer; after a failover an old one may never get any. Longer than a worker's
 * longest wait for a job, which is ten seconds (BullMQ, maximumBlockTimeout).
 */
const SILENCE_MS = 13_000;

const COMMON: RedisOptions = {
  enableReadyCheck: false, // needs INFO
  reconnectOnError: ({ message }) => message.includes('READONLY'), // a former primary, so connect to the new one
};

/** BullMQ on Redis. */
export class RedisWorkStore extends WorkStore {
  readonly workerClass = CalmWorker;
  readonly workerOptions;
  private readonly workers: Redis;
  private readonly producers: Redis;

  /** @param prefix of all keys */
  constructor(
    url: string,
    private readonly prefix: string,
    clock: Clock,
  ) {
    super(clock, 'REDIS_URL');
    setDefaultBackendFactory(createRedisBackend);
    // A worker's next fetch waits until the store is back.
    this.workers = new Redis(url, { ...COMMON, maxRetriesPerRequest: null, socketTimeout: SILENCE_MS });
    this.producers = new Redis(url, {
      ...COMMON,
      maxRetriesPerRequest: 1,
      enableOfflineQueue: false,
      commandTimeout: ADD_TIMEOUT_MS,
      socketTimeout: ADD_TIMEOUT_MS, // otherwise a silent connection keeps every command that it was sent
    });
    for (const redis of [this.workers, this.producers]) redis.on('error', (error) => this.failed(error));
    this.workerOptions = { connection: this.workers, prefix };
  }

  open(name: string): JobQueue {
    const { producers: connection, prefix } = this;
    return new Queue<RowJob, void, string>(name, {
      ...{ connection, prefix, skipVersionCheck: true },
      skipWaitingForReady: true, // otherwise every add before the first connection is kept until then
    });
  }

  async close(): Promise<void> {
    for (const redis of [this.workers, this.producers]) redis.disconnect();
  }
}
