import { randomBytes } from 'node:crypto';

/** The queue backend of one suite. */
export interface QueueBackend {
  readonly name: 'PostgreSQL' | 'Redis';
  /** Set on Redis only. No other suite uses this database at the same time, so it may be flushed. */
  readonly redisUrl?: string;
  readonly queuePrefix: string;
}

/** Declares a suite twice: on PostgreSQL, and on Redis if a redis-server is installed. */
export function describeOnBothBackends(name: string, suite: (backend: QueueBackend) => void): void {
  const redis = process.env.TEST_REDIS_URL;
  const queuePrefix = `test-${randomBytes(6).toString('hex')}`;
  describe(`${name}, on PostgreSQL`, () => suite({ name: 'PostgreSQL', queuePrefix }));
  const onRedis = redis ? describe : describe.skip;
  // Suites of one Jest worker run one after the other, so each worker has its own database.
  const redisUrl = `${redis}/${process.env.JEST_WORKER_ID ?? '1'}`;
  onRedis(`${name}, on Redis`, () => suite({ name: 'Redis', queuePrefix, redisUrl }));
}
