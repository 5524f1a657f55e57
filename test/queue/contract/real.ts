import { randomBytes } from 'node:crypto';
import { type EventEmitter, once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type BackendFactory, type ConnectionOptions, createPostgresBackend, createRedisBackend, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { dumpOf } from '../../../harness/database-dump.js';
import { findRedisServer, startRedis } from '../../../harness/redis-server.js';
import { startProxyOf, type TcpProxy } from '../../../harness/tcp-proxy.js';
import { createQueueTables } from '../../../src/queue/backend/queue-tables.js';
import { CalmWorker } from '../../../src/queue/work/calm-worker.js';
import type { ContractStore, ContractWorker, Processor } from './store.js';

/** How long an add of a producer may take. */
const ADD_TIMEOUT_MS = 1_500;

/** The workers' settings in production. */
const LOCKS = { lockDuration: 5_000, stalledInterval: 5_000 };

const ignore = () => undefined;

/** BullMQ's types accept a factory only with type arguments. */
const WorkerOn = CalmWorker as unknown as new (
  name: string,
  processor: Processor,
  options: object,
  backend: BackendFactory,
) => ContractWorker & EventEmitter;

/** How often to look whether the queue has worked. */
const POLL_MS = 10;

/** A port without a server. */
const CLOSED_PORT = 1;

/** Connections of a producer. They fail at once while the store is away. */
function producerRedis(url: string): Redis {
  const redis = new Redis(url, {
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    commandTimeout: ADD_TIMEOUT_MS,
    retryStrategy: () => 100,
  });
  return redis.on('error', ignore);
}

function poolOf(connectionString: string, max: number): pg.Pool {
  const options = { connectionTimeoutMillis: ADD_TIMEOUT_MS, keepAlive: true, options: '-c search_path=bullmq' };
  const pool = new pg.Pool({ ...options, connectionString, max }).on('error', ignore);
  pool.setMaxListeners(0); // each queue and worker listens
  // Each connected client reports its loss, too.
  return pool.on('connect', (client) => client.setMaxListeners(0).on('error', ignore));
}

/** BullMQ on a Redis of its own, because the tests wipe it. */
export async function openRedis(): Promise<ContractStore> {
  const folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'contract-'));
  const server = await startRedis(findRedisServer() ?? '', folder);
  const { proxy, url } = await startProxyOf(server.url);
  const workers = new Redis(server.url, { maxRetriesPerRequest: null }).on('error', ignore);
  const [producers, unreachable] = [producerRedis(url.href), producerRedis(`redis://127.0.0.1:${CLOSED_PORT}`)];
  await once(producers, 'ready');
  return realStore({
    randomAdds: 1_000,
    unreachableAdd: 'hangs',
    connections: { workers, producers, unreachable },
    backend: createRedisBackend,
    proxy,
    wipe: () => workers.flushall(),
    commands: async () => Number(/total_commands_processed:(\d+)/.exec(await workers.info('stats'))?.[1]),
    dump: () => dumpRedis(workers),
    end: async () => {
      for (const redis of [workers, producers, unreachable]) redis.disconnect();
      await server.stop('SIGKILL');
    },
  });
}

/** BullMQ on a database of its own. */
export async function openPostgres(): Promise<ContractStore> {
  const server = process.env.TEST_PG_URL ?? '';
  const name = `contract_${randomBytes(6).toString('hex')}`;
  const direct = new URL(server);
  direct.pathname = `/${name}`;
  const admin = new pg.Pool({ connectionString: server, max: 1 });
  await admin.query(`CREATE DATABASE ${name}`);
  await createQueueTables(direct.href);
  const { proxy, url } = await startProxyOf(direct.href);
  const closed = Object.assign(new URL(direct.href), { port: String(CLOSED_PORT) });
  const [workers, producers, unreachable] = [poolOf(direct.href, 20), poolOf(url.href, 8), poolOf(closed.href, 1)];
  let commands = 0;
  workers.on('acquire', () => {
    commands += 1;
  });
  const { rows } = await workers.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'bullmq' AND tablename <> 'migration'`,
  );
  return realStore({
    randomAdds: 300,
    unreachableAdd: 'rejected',
    connections: { workers, producers, unreachable } as never,
    backend: createPostgresBackend as unknown as BackendFactory,
    proxy,
    wipe: () => workers.query(rows.map((table) => `DELETE FROM ${table.name}`).join(';')),
    commands: async () => commands,
    dump: () => dumpOf(direct.href),
    end: async () => {
      await Promise.all([workers.end(), producers.end(), unreachable.end()]);
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.end();
    },
  });
}

interface RealParts extends Required<Pick<ContractStore, 'randomAdds' | 'unreachableAdd' | 'commands' | 'dump'>> {
  readonly connections: Readonly<Record<'workers' | 'producers' | 'unreachable', ConnectionOptions>>;
  readonly backend: BackendFactory;
  /** In front of the store, for the producers. */
  readonly proxy: TcpProxy;
  wipe(): Promise<unknown>;
  end(): Promise<void>;
}

function realStore({ connections, backend, proxy, wipe, end, ...parts }: RealParts): ContractStore {
  const opened: { close(): Promise<void> }[] = [];
  const queueOn = (name: string, connection: ConnectionOptions) =>
    new Queue(name, { connection }, backend).on('error', ignore);
  return {
    ...parts,
    queue: (name) => {
      const queue = queueOn(name, connections.producers);
      opened.push(queue);
      return queue;
    },
    unreachableQueue: (name) => queueOn(name, connections.unreachable),
    worker: (name, processor, options) => {
      const worker = new WorkerOn(name, processor, { ...LOCKS, ...options, connection: connections.workers }, backend);
      worker.on('error', ignore);
      opened.push(worker);
      return worker;
    },
    wipe: async () => {
      await wipe();
    },
    advance: (ms) => delay(ms),
    until: async (look) => {
      while (!(await look())) await delay(POLL_MS);
    },
    sleep: (ms) => delay(ms),
    nowMs: () => performance.now(),
    setAway: (isAway) => (isAway ? proxy.cut() : proxy.restore()),
    closeOpened: async () => {
      await Promise.all(opened.splice(0).map((each) => each.close()));
    },
    close: async () => {
      await end();
      await proxy.close();
    },
  };
}

/** The values of all keys as text. */
async function dumpRedis(redis: Redis): Promise<string> {
  const texts: unknown[] = [];
  for (const key of await redis.keys('*')) {
    const type = await redis.type(key);
    if (type === 'hash') texts.push(await redis.hgetall(key));
    if (type === 'stream') texts.push(await redis.xrange(key, '-', '+'));
    if (type === 'string') texts.push(await redis.get(key));
  }
  return JSON.stringify(texts);
}
