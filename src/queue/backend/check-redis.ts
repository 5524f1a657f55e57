import { Redis } from 'ioredis';
import type { Env } from '../../config/env.js';
import { tlsFault } from '../../errors/tls-fault.js';
import { isRedisReply, storeFault } from './store-fault.js';

/** The oldest supported Redis. */
export const OLDEST_VERSION = '6.2.0';

const CONNECT_TIMEOUT_MS = 3_000;

/** Keys of two slots, so that a cluster refuses the script. It writes, so that a replica and a full Redis do, too. */
const PROBE = `redis.call('SET', KEYS[1], '', 'PX', 1000) return redis.call('EXISTS', KEYS[2])`;
const CLUSTER = /\b(MOVED|CROSSSLOT|CLUSTERDOWN|ASK)\b/;

/**
 * Checks at start that the queues can use Redis.
 *
 * @returns warnings; due work waits until an operator corrects Redis
 * @throws {Error} if Redis is a cluster, is too old, may evict jobs (BullMQ, Going to production) or has an unknown
 *   certificate
 */
export async function checkRedis({ REDIS_URL: url = '', QUEUE_PREFIX: prefix }: RedisEnv): Promise<string[]> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
  });
  let cause: unknown; // the error of `connect` only reports that the connection is closed
  redis.on('error', (error) => {
    cause = error;
  });
  try {
    await redis.connect();
    await redis.eval(PROBE, 2, `${prefix}:probe-1`, `${prefix}:probe-2`);
  } catch (error) {
    return [explain(isRedisReply(error) ? error : (cause ?? error))];
  } finally {
    if (redis.status !== 'ready') redis.disconnect();
  }
  try {
    refuseUnfit(await redis.info());
    return [];
  } catch (error) {
    if (!isRedisReply(error)) throw error;
    return [UNASKED];
  } finally {
    redis.disconnect();
  }
}

type RedisEnv = Pick<Env, 'REDIS_URL' | 'QUEUE_PREFIX'>;

const UNASKED = `The user in REDIS_URL may not run INFO, so the version of Redis (at least ${OLDEST_VERSION}) and its maxmemory-policy (noeviction) are not checked.`;

/** @throws {Error} for a fault that a start cannot wait out */
function explain(error: unknown): string {
  if (isRedisReply(error) && CLUSTER.test(error.message))
    throw new Error('REDIS_URL names a Redis Cluster, which the queues cannot use: name a Redis without cluster mode.');
  const tls = tlsFault(error, { setting: 'REDIS_URL', authority: 'in NODE_EXTRA_CA_CERTS=/path/ca.pem' });
  if (tls) throw new Error(`Redis cannot be reached over TLS, because ${tls}`);
  return `${storeFault(error, 'REDIS_URL')} Due work waits in PostgreSQL until this is corrected.`;
}

/** @param info the reply to INFO @throws {Error} if the queues cannot use this Redis */
export function refuseUnfit(info: string): void {
  const version = /^redis_version:(\S+)/m.exec(info)?.[1] ?? OLDEST_VERSION;
  if (version.localeCompare(OLDEST_VERSION, undefined, { numeric: true }) < 0)
    throw new Error(`REDIS_URL names Redis ${version}. The queues need ${OLDEST_VERSION} or newer.`);
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (policy !== 'noeviction')
    throw new Error(
      `Redis runs with maxmemory-policy ${policy} (REDIS_URL says where): set it to noeviction, otherwise it drops jobs.`,
    );
}
