import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { askRedis, findRedisServer, startRedis } from '../../harness/redis-server.js';
import { startProxyOf } from '../../harness/tcp-proxy.js';
import { freshDatabase, query, type TestDatabase } from './databases.js';

/** A user of Redis as managed services create it, without INFO. */
const USER = 'ACL SETUSER app reset on >hushhush ~* &* +@all -@dangerous';

/** A store of the queues that a test harms. */
export interface HarmedStore {
  readonly database: TestDatabase;
  /** Settings that lead to it. */
  readonly env: Readonly<Record<string, string>>;
  /** It loses everything. */
  wipe(): Promise<unknown>;
  /** It cannot be reached. */
  leave(): Promise<unknown>;
  comeBack(): Promise<unknown>;
  /** It takes what it is sent, and never answers. */
  stall(): void;
  resume(): void;
  /** It answers every command with an error. */
  refuse(): Promise<unknown>;
  allow(): Promise<unknown>;
  close(): Promise<unknown>;
}

/** A Redis of its own. @param wanted its port; 0 for any free one */
export async function harmedRedis(wanted = 0): Promise<HarmedStore> {
  const database = await freshDatabase();
  const folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'redis-'));
  let redis = await startRedis(findRedisServer() ?? '', folder, wanted);
  const { port } = redis;
  const allow = () => askRedis(port, USER);
  await allow();
  return {
    database,
    env: { DATABASE_URL: database.url, REDIS_URL: `redis://app:hushhush@127.0.0.1:${port}` },
    wipe: () => askRedis(port, 'FLUSHALL'),
    leave: () => redis.stop('SIGKILL'),
    comeBack: async () => {
      redis = await startRedis(findRedisServer() ?? '', folder, port);
      await allow();
    },
    stall: () => process.kill(redis.pid, 'SIGSTOP'),
    resume: () => process.kill(redis.pid, 'SIGCONT'),
    refuse: () => askRedis(port, 'ACL SETUSER app -@all'),
    allow,
    close: () => redis.stop('SIGKILL'),
  };
}

/** The schema of BullMQ; if the store is away, the whole database is. */
export async function harmedPostgres(): Promise<HarmedStore> {
  const database = await freshDatabase();
  const { proxy, url } = await startProxyOf(database.url);
  const rename = (from: string, to: string) => query(database, `ALTER SCHEMA ${from} RENAME TO ${to}`);
  const TABLES = `SELECT string_agg(format('%I.%I', schemaname, tablename), ', ') AS all
    FROM pg_tables WHERE schemaname = 'bullmq' AND tablename NOT LIKE '%migration%'`;
  return {
    database,
    env: { DATABASE_URL: url.href },
    wipe: async () => {
      const [tables] = await query<{ all: string }>(database, TABLES);
      await query(database, `TRUNCATE ${tables?.all}`);
    },
    leave: proxy.cut,
    comeBack: proxy.restore,
    stall: proxy.stall,
    resume: proxy.resume,
    refuse: () => rename('bullmq', 'renamed'),
    allow: () => rename('renamed', 'bullmq'),
    close: proxy.close,
  };
}
