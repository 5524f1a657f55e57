import { setTimeout as delay } from 'node:timers/promises';
import {
  createPostgresBackend,
  type PostgresQueueBackend,
  type QueueOptions,
  runMigrations,
  setDefaultBackendFactory,
} from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Env } from '../../config/env.js';
import { tlsFault } from '../../config/tls-fault.js';
import { ANSWER_TIMEOUT_MS, disableNewerTimeouts, sessionConfig, withClient } from '../../database/database.js';
import { QUEUE_NAMES } from './queue-names.js';

/** Milliseconds between two attempts of one caller to connect for the first time. */
const PAUSE_MS = 250;

/** A connection whose end, at whatever moment, raises no unhandled error: that would end the process. */
class AttendedClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    this.on('error', () => undefined);
    this.once('connect', () => void disableNewerTimeouts(this).catch(() => undefined));
  }
}

/**
 * BullMQ's backend on PostgreSQL, which connects when its database comes back although it was away at first. BullMQ
 * itself keeps the failure of the first connection for good (`PostgresConnection.waitUntilReady`): such a worker never
 * took a job, and asked for one again without a pause, so that nothing else ran in the process. Nor does it listen to
 * errors of its connections from their first moment on.
 */
export const createPatientPostgresBackend: typeof createPostgresBackend = (...args) => {
  const backend = createPostgresBackend(...args);
  const { connection } = backend as PostgresQueueBackend;
  connection.pool.on('connect', (client) => client.on('error', () => undefined));
  Reflect.set(connection, 'pgModule', { ...pg, Client: AttendedClient });
  const connect = connection.waitUntilReady.bind(connection);
  connection.waitUntilReady = async () => {
    try {
      await connect();
    } catch (error) {
      Reflect.set(connection, 'readyPromise', undefined);
      await delay(PAUSE_MS);
      throw error;
    }
  };
  return backend;
};

/** Connections to PostgreSQL that one queue or one worker may hold when BullMQ runs on it. */
const POSTGRES_CONNECTIONS = 2;

/**
 * How long such a connection may be idle. Longer than an idle worker waits between two statements (`IDLE_SECONDS`),
 * because a new connection costs both sides more CPU than everything else that an idle process does.
 */
const IDLE_CONNECTION_MS = 30_000;

/**
 * Milliseconds without a byte from Redis after which a connection that waits for an answer is made anew; after a
 * failover the old one may never say a word. Longer than a worker's own longest wait for a job, which is ten seconds
 * (BullMQ, maximumBlockTimeout).
 */
const SILENCE_MS = 13_000;

type Connection = QueueOptions['connection'];
type BackendEnv = Pick<Env, 'REDIS_URL' | 'DATABASE_URL' | 'QUEUE_PREFIX'>;

/** The one switch: Redis when REDIS_URL is set, otherwise BullMQ's PostgreSQL backend on DATABASE_URL. */
export function workerOptions(env: BackendEnv): QueueOptions {
  if (env.REDIS_URL) {
    setDefaultBackendFactory();
    const connection = { url: env.REDIS_URL, maxRetriesPerRequest: null, socketTimeout: SILENCE_MS };
    return { connection: connection as Connection, prefix: env.QUEUE_PREFIX };
  }
  setDefaultBackendFactory(createPatientPostgresBackend);
  // BullMQ types `connection` for Redis; the PostgreSQL factory reads a node-postgres pool configuration.
  const pool = {
    ...sessionConfig(env.DATABASE_URL),
    max: POSTGRES_CONNECTIONS,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    query_timeout: ANSWER_TIMEOUT_MS,
    keepAlive: true,
  };
  return { connection: pool as unknown as Connection, prefix: env.QUEUE_PREFIX };
}

/**
 * Options of a producer: without its store it fails at once, because the poller notifies again. BullMQ prints a warning
 * about any other `maxRetriesPerRequest` than null.
 */
export function producerOptions(env: BackendEnv): QueueOptions {
  const options = workerOptions(env);
  if (!env.REDIS_URL) return options;
  return { ...options, connection: { ...options.connection, enableOfflineQueue: false } as Connection };
}

/**
 * Prepares the store of the queues at start: BullMQ's tables on PostgreSQL, or a look at Redis' eviction policy.
 *
 * @param ownerUrl of a role that may make tables, if there is one at hand
 * @returns a warning when Redis can't be reached; the service starts all the same and catches up by its poller
 * @throws {Error} when Redis may evict: it would lose jobs silently (BullMQ, Going to production); when it is not who
 *   REDIS_URL says, by its certificate; when there are no tables, and nobody to make them
 */
export async function prepareQueueStore(env: BackendEnv, ownerUrl: string | undefined): Promise<string | undefined> {
  if (env.REDIS_URL) return checkRedis(env.REDIS_URL);
  return ownerUrl === undefined ? checkQueueTables(env.DATABASE_URL ?? '') : createQueueTables(ownerUrl);
}

async function checkQueueTables(url: string): Promise<undefined> {
  const { rows } = await withClient(url, (client) =>
    client.query<{ isThere: boolean }>(`SELECT to_regnamespace('bullmq') IS NOT NULL AS "isThere"`),
  );
  if (!rows[0]?.isThere)
    throw new Error('The database has no tables for the queues: run migrate without REDIS_URL, or set REDIS_URL here.');
}

async function createQueueTables(ownerUrl: string): Promise<undefined> {
  await withClient(ownerUrl, async (client) => {
    await runMigrations(client as unknown as Parameters<typeof runMigrations>[0]);
    // BullMQ makes a queue's sequence at its first job, which a role that owns nothing may not do. Its id is skipped.
    await client.query('SELECT bullmq.next_job_id(name) FROM unnest($1::text[]) AS name', [QUEUE_NAMES]);
  });
}

/** What Redis answers to a wrong password, or to none. */
const REFUSED = /^(WRONGPASS|NOAUTH|ERR invalid password)/;

async function checkRedis(url: string): Promise<string | undefined> {
  const once = { lazyConnect: true, connectTimeout: 3_000, retryStrategy: null, maxRetriesPerRequest: 0 };
  const redis = new Redis(url, once);
  let fault: unknown;
  redis.on('error', (error) => {
    fault = error; // what `connect` throws says only that the connection is closed
  });
  try {
    await redis.connect();
    const policy = /maxmemory_policy:(\S+)/.exec(await redis.info('memory'))?.[1];
    if (policy && policy !== 'noeviction') {
      throw new Error(
        `Redis runs with maxmemory-policy ${policy} (REDIS_URL says where): set it to noeviction, otherwise it drops jobs.`,
      );
    }
    return undefined;
  } catch (error) {
    if (error instanceof Error && error.message.startsWith('Redis runs')) throw error;
    const tls = tlsFault(fault, { setting: 'REDIS_URL', authority: 'in NODE_EXTRA_CA_CERTS=/path/ca.pem' });
    if (tls) throw new Error(`Redis can not be reached over TLS, for ${tls}`);
    if ([fault, error].some((each) => each instanceof Error && REFUSED.test(each.message)))
      return 'Redis refuses the user or the password of REDIS_URL: correct it; work is kept in PostgreSQL meanwhile.';
    return 'Redis cannot be reached at REDIS_URL. Work is kept in PostgreSQL and continues once Redis is back.';
  } finally {
    redis.disconnect();
  }
}
