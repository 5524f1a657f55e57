import type { Env } from '../../config/env.js';
import { checkRedis } from './check-redis.js';
import { checkQueueTables, createQueueTables } from './queue-tables.js';

/**
 * Prepares the store of the queues at start.
 *
 * @param ownerUrl of a role that may create tables; undefined without one
 * @returns warnings
 * @throws {Error} if the queues cannot use the store
 */
export async function prepareQueueStore(
  env: Pick<Env, 'REDIS_URL' | 'DATABASE_URL' | 'QUEUE_PREFIX'>,
  ownerUrl: string | undefined,
): Promise<string[]> {
  if (env.REDIS_URL) return checkRedis(env);
  await (ownerUrl === undefined ? checkQueueTables(env.DATABASE_URL) : createQueueTables(ownerUrl));
  return [];
}
