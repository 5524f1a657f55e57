import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { withClient } from './database.js';

/** Any fixed number: the process that holds this advisory lock migrates, the others wait. */
const LOCK = 727_001;

/** Milliseconds between two tries to get it. */
const LOCK_POLL_MS = 200;

/** Milliseconds that a migration waits for a table: whoever uses it waits behind that, and webhooks have 1.8 seconds. */
const TABLE_WAIT_MS = 1_000;

/** PostgreSQL's code of a lock that was not had in time. */
const NOT_LOCKED = '55P03';

/** How often a migration is tried that meets a locked table, and milliseconds between two tries: some five minutes. */
const PATIENCE = { tries: 60, pauseMs: 4_000 };

/** An index that is built while others write, which no transaction can do: it stands alone in its migration. */
const CONCURRENT_INDEX = /^(?:--.*\n)*CREATE (?:UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS "(\w+)"[^;]*;\s*$/;

/** The table in which Prisma keeps its migration history, so that `prisma migrate deploy` can take over at any time. */
const HISTORY = `CREATE TABLE IF NOT EXISTS _prisma_migrations (
  id                  VARCHAR(36) PRIMARY KEY NOT NULL,
  checksum            VARCHAR(64) NOT NULL,
  finished_at         TIMESTAMPTZ,
  migration_name      VARCHAR(255) NOT NULL,
  logs                TEXT,
  rolled_back_at      TIMESTAMPTZ,
  started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
  applied_steps_count INTEGER NOT NULL DEFAULT 0
)`;

/** The migrations that a database has had. */
const APPLIED = `SELECT migration_name AS name, checksum FROM _prisma_migrations
  WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL`;

/** The folder of the committed migrations, seen from the compiled file and from the source alike. */
export function migrationsFolder(): string {
  const root = __dirname.includes(`${path.sep}dist${path.sep}`) ? '../../..' : '../..';
  return path.resolve(__dirname, root, 'prisma/migrations');
}

/**
 * Applies the migrations that the database has not had yet, each in a transaction of its own or as an index that is built
 * while others write, in the order of their names, under an advisory lock: any number of processes may start at once.
 *
 * @param databaseUrl of a role that owns the schema
 * @returns the names of the migrations that were applied now
 * @throws {Error} naming the migration that failed (it leaves nothing behind), or one that was edited after it was applied
 */
export async function applyMigrations(
  databaseUrl: string,
  { folder = migrationsFolder(), patience = PATIENCE } = {},
): Promise<string[]> {
  return withClient(databaseUrl, async (client) => {
    await takeLock(client);
    await client.query(HISTORY);
    const { rows } = await client.query<{ name: string; checksum: string }>(APPLIED);
    const known = new Map(rows.map((row) => [row.name, row.checksum]));
    const applied: string[] = [];
    for (const name of await migrationNames(folder)) {
      const sql = await readFile(path.join(folder, name, 'migration.sql'), 'utf8');
      const checksum = createHash('sha256').update(sql).digest('hex');
      const before = known.get(name);
      if (before === checksum) continue;
      if (before)
        throw new Error(`The migration ${name} was changed after it was applied; restore the file and add a new one.`);
      await withPatience(name, patience, () => applyOne(client, name, sql, checksum));
      applied.push(name);
    }
    return applied;
  });
}

/** The names of the migrations, in their order. */
async function migrationNames(folder = migrationsFolder()): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() ? entry.name : [])).sort();
}

/** The migrations that a database has not had yet, as any role that may read their history sees it. */
export async function missingMigrations(client: pg.Client): Promise<string[]> {
  const names = await migrationNames();
  const { rows: tables } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS "isThere"`,
  );
  if (!tables[0]?.isThere) return names;
  const { rows } = await client.query<{ name: string }>(APPLIED);
  const applied = new Set(rows.map((row) => row.name));
  return names.filter((name) => !applied.has(name));
}

/** Waits in no statement: that would have a snapshot, for whose end an index that is built at the same time waits. */
async function takeLock(client: pg.Client): Promise<void> {
  const take = 'SELECT pg_try_advisory_lock($1) AS "isOurs"';
  while (!(await client.query<{ isOurs: boolean }>(take, [LOCK])).rows[0]?.isOurs) await delay(LOCK_POLL_MS);
}

/** Does a migration again while other transactions hold what it has to lock: meanwhile the service uses the tables. */
async function withPatience(name: string, { tries, pauseMs }: typeof PATIENCE, apply: () => Promise<void>) {
  for (let tried = 1; ; tried++) {
    try {
      return await apply();
    } catch (error) {
      const { cause, message } = error as Error & { cause?: { code?: string } };
      if (cause?.code !== NOT_LOCKED) throw error;
      const held =
        'another transaction holds a table that it changes (pg_stat_activity shows those idle in transaction)';
      if (tried >= tries) throw new Error(`${message}: ${held}; end that one and migrate again.`, { cause });
      if (tried === 1) new Logger('migrations').warn(`The migration ${name} is tried again: ${held}.`);
      await delay(pauseMs);
    }
  }
}

async function applyOne(client: pg.Client, name: string, sql: string, checksum: string): Promise<void> {
  const [, index] = CONCURRENT_INDEX.exec(sql) ?? [];
  if (index !== undefined) return buildIndex(client, name, sql, checksum, index);
  await client.query('BEGIN');
  try {
    await client.query(`SET LOCAL lock_timeout = ${TABLE_WAIT_MS}`);
    await client.query(sql);
    await recordApplied(client, name, checksum);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw new Error(`The migration ${name} failed and was undone: ${(error as Error).message}`, { cause: error });
  }
}

/** What an attempt that broke off has left is no index, and in the way of the next. */
async function buildIndex(
  client: pg.Client,
  name: string,
  sql: string,
  checksum: string,
  index: string,
): Promise<void> {
  try {
    const broken = 'SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid';
    if ((await client.query(broken, [`"${index}"`])).rowCount) await client.query(`DROP INDEX CONCURRENTLY "${index}"`);
    await client.query(sql);
    await recordApplied(client, name, checksum);
  } catch (error) {
    throw new Error(`The migration ${name} failed; run migrate again: ${(error as Error).message}`);
  }
}

async function recordApplied(client: pg.Client, name: string, checksum: string): Promise<void> {
  await client.query(
    `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
     VALUES ($1, $2, $3, now(), 1)`,
    [randomUUID(), checksum, name],
  );
}
