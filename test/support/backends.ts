import { randomBytes } from 'node:crypto';

/** Where the queues of one suite live. */
export interface QueueBackend {
  readonly name: 'PostgreSQL' | 'Redis';
  /** Set on Redis only: a database that no other suite uses at the same time, so it may be flushed. */
  readonly redisUrl?: string;
  readonly queuePrefix: string;
  /** What says the same to a program. */
  readonly env: { readonly REDIS_URL: string; readonly QUEUE_PREFIX: string };
}

/** Declares a suite twice: on PostgreSQL, and on Redis, which is skipped where the harness has none. */
export function describeOnBothBackends(name: string, suite: (backend: QueueBackend) => void): void {
  const redis = process.env.TEST_REDIS_URL;
  describe(`${name}, on PostgreSQL`, () => suite(backend('PostgreSQL')));
  const onRedis = redis ? describe : describe.skip;
  // Suites of one Jest worker run one after the other: its number is a database that they share with nobody else.
  onRedis(`${name}, on Redis`, () => suite(backend('Redis', `${redis}/${process.env.JEST_WORKER_ID ?? '1'}`)));
}

function backend(name: QueueBackend['name'], redisUrl?: string): QueueBackend {
  const queuePrefix = `test-${randomBytes(6).toString('hex')}`;
  return { name, redisUrl, queuePrefix, env: { REDIS_URL: redisUrl ?? '', QUEUE_PREFIX: queuePrefix } };
}
