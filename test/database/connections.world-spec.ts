import type pg from 'pg';
import { Clock } from '../../src/config/clock.js';
import { Env } from '../../src/config/env.js';
import { withClient } from '../../src/database/connect/session.js';
import { Database } from '../../src/database/database.js';
import { FeedBell } from '../../src/feed/feed-bell.js';
import { UploadConnectionPool } from '../../src/imports/upload/upload-connections.js';
import { WorkerProcess } from '../../src/processes/worker-process.js';
import { PostgresWorkStore } from '../../src/queue/work/postgres-store.js';
import { InboxWriter } from '../../src/webhooks/receive/inbox.writer.js';
import { useWorld } from '../world/use-world.js';

/** Defaults of a database that would change answers or end connections, with the values that a connection needs. */
const DEFAULTS: Record<string, [hostile: string, needed: string]> = {
  default_transaction_isolation: ['repeatable read', 'read committed'],
  DateStyle: ['German, DMY', 'ISO, MDY'],
  IntervalStyle: ['sql_standard', 'postgres'],
  TimeZone: ['Pacific/Kiritimati', 'UTC'],
  extra_float_digits: ['-15', '1'],
  bytea_output: ['escape', 'hex'],
  standard_conforming_strings: ['off', 'on'],
  lock_timeout: ['5min', '0'],
  transaction_timeout: ['5min', '0'],
  idle_session_timeout: ['5min', '0'],
};

const world = useWorld();

/** Changes the defaults of the database, then opens new connections. */
async function alterDatabase(changes: string[]): Promise<void> {
  const database = new URL(world.database.url).pathname.slice(1);
  for (const change of changes) await world.sql(`ALTER DATABASE ${database} ${change}`);
  await world.restart();
}

beforeAll(() => alterDatabase(Object.entries(DEFAULTS).map(([name, [hostile]]) => `SET ${name} = '${hostile}'`)));
afterAll(() => alterDatabase(Object.keys(DEFAULTS).map((name) => `RESET ${name}`)));

const poolOf = (type: Parameters<typeof world.get>[0], field: string) =>
  Reflect.get(world.get(type) as object, field) as pg.Pool;

/** Every kind of connection. */
const CONNECTIONS: Record<string, (query: (client: Pick<pg.Pool, 'query'>) => Promise<unknown>) => Promise<unknown>> = {
  'short statements': (query) => query(world.get(Database).pool),
  'many rows': (query) => query(world.get(Database).bulkPool),
  commands: (query) => withClient(world.get(Env).DATABASE_URL, query),
  heartbeats: (query) => query(poolOf(WorkerProcess, 'own')),
  uploads: (query) => query(poolOf(UploadConnectionPool, 'pool')),
  webhooks: (query) => query(poolOf(InboxWriter, 'pool')),
  'feed readers': async (query) => {
    const bell = world.get(FeedBell);
    const isListening = new Promise<void>((resolve) => bell.onRing(resolve));
    bell.listen();
    await isListening;
    return query(Reflect.get(bell, 'client') as pg.Client);
  },
  queues: async (query) => {
    const store = new PostgresWorkStore(world.get(Env).DATABASE_URL, world.get(Clock));
    return query(Reflect.get(store, 'workers') as pg.Pool).finally(() => store.close());
  },
  // Those of earlier tests are older than the defaults, so the last of all is asked.
  'the statements of tests': async (query) => {
    const { pool } = world.database;
    const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
    return query(clients.at(-1) as pg.PoolClient).finally(() => clients.forEach((client) => void client.release()));
  },
};

test.each(Object.keys(CONNECTIONS))('the connection for %s sets what the service depends on', async (kind) => {
  const needed = Object.fromEntries(Object.entries(DEFAULTS).map(([name, [, value]]) => [name, value]));
  const read = `SELECT name, current_setting(name) AS value FROM unnest($1::text[]) AS name`;
  const settings = await CONNECTIONS[kind]?.(async (client) => {
    const { rows } = await client.query<{ name: string; value: string }>(read, [Object.keys(needed)]);
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  });
  expect(settings).toEqual(needed);
});

test('a transaction that waited for a lock sees what its holder committed', async () => {
  const holder = await world.database.pool.connect();
  await holder.query('BEGIN; SELECT pg_advisory_xact_lock(1)');
  const counted = world.get(Database).transaction(async (tx) => {
    await tx.query('SELECT pg_advisory_xact_lock(1)');
    return (await tx.query<{ count: string }>('SELECT count(*) FROM handed_out_urls')).rows[0]?.count;
  });
  await world.eventually('the transaction waits', async () => {
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return (await world.sql(waiting)).length === 1;
  });
  await holder.query(`INSERT INTO handed_out_urls (fingerprint, handed_out_at) VALUES ('test', now()); COMMIT`);
  holder.release();
  expect(await counted).toBe('1');
});

test.each(['40001', '40P01'])('a transaction that fails with %s runs again', async (code) => {
  let runs = 0;
  await world.get(Database).transaction(async (tx) => {
    runs += 1;
    if (runs === 1) await tx.query(`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '${code}'; END $$`);
  });
  expect(runs).toBe(2);
});
