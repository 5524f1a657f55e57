import { randomBytes } from 'node:crypto';

/** The queue backend of one suite. */
export interface QueueBackend {
  readonly name: 'PostgreSQL' | 'Redis';
  /** Set on Redis only. No other suite uses this database at the same time, so it may be flushed. */
  readonly redisUrl?: string;
  readonly queuePrefix: string;
  /** The same as settings of a program. */
  readonly env: { readonly REDIS_URL: string; readonly QUEUE_PREFIX: string };
}

/** Declares a suite twice: on PostgreSQL, and on Redis if a redis-server is installed. */
export function describeOnBothBackends(name: string, suite: (backend: QueueBackend) => void): void {
  const redis = process.env.TEST_REDIS_URL;
  describe(`${name}, on PostgreSQL`, () => suite(queueBackend('PostgreSQL')));
  const onRedis = redis ? describe : describe.skip;
  // Suites of one Jest worker run one after the other, so each worker has its own database.
  onRedis(`${name}, on Redis`, () => suite(queueBackend('Redis', `${redis}/${process.env.JEST_WORKER_ID ?? '1'}`)));
}

export function queueBackend(name: QueueBackend['name'], redisUrl?: string): QueueBackend {
  const queuePrefix = `test-${randomBytes(6).toString('hex')}`;
  return { name, redisUrl, queuePrefix, env: { REDIS_URL: redisUrl ?? '', QUEUE_PREFIX: queuePrefix } };
}
