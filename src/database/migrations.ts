import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { withClient } from './database.js';

/** Any fixed number: the process that holds this advisory lock migrates, the others wait. */
const LOCK = 727_001;

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
 * Applies the migrations that the database has not had yet, each in a transaction of its own, in the order of their
 * names, under an advisory lock: any number of processes may start at once.
 *
 * @param databaseUrl of a role that owns the schema
 * @returns the names of the migrations that were applied now
 * @throws {Error} naming the migration that failed (it leaves nothing behind), or one that was edited after it was applied
 */
export async function applyMigrations(databaseUrl: string): Promise<string[]> {
  return withClient(databaseUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
    await client.query(HISTORY);
    const { rows } = await client.query<{ name: string; checksum: string }>(APPLIED);
    const known = new Map(rows.map((row) => [row.name, row.checksum]));
    const applied: string[] = [];
    for (const name of await migrationNames()) {
      const sql = await readFile(path.join(migrationsFolder(), name, 'migration.sql'), 'utf8');
      const checksum = createHash('sha256').update(sql).digest('hex');
      const before = known.get(name);
      if (before === checksum) continue;
      if (before)
        throw new Error(`The migration ${name} was changed after it was applied; restore the file and add a new one.`);
      await applyOne(client, name, sql, checksum);
      applied.push(name);
    }
    return applied;
  });
}

/** The names of the migrations, in their order. */
async function migrationNames(): Promise<string[]> {
  const entries = await readdir(migrationsFolder(), { withFileTypes: true });
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

async function applyOne(client: pg.Client, name: string, sql: string, checksum: string): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query(sql);
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at, applied_steps_count)
       VALUES ($1, $2, $3, now(), 1)`,
      [randomUUID(), checksum, name],
    );
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw new Error(`The migration ${name} failed and was undone: ${(error as Error).message}`);
  }
}
