import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import { projectPath } from '../config/version.js';
import { LOCKS } from './advisory-locks.js';
import { withClient } from './connect/session.js';

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

const APPLIED = `SELECT migration_name AS name, checksum FROM _prisma_migrations
  WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL`;

interface Migration {
  name: string;
  sql: string;
  /** SHA-256 of `sql` in hex, as Prisma stores it. */
  checksum: string;
}

/**
 * Applies the migrations that the database lacks, in the order of their names, each in its own transaction. An advisory
 * lock makes it safe for any number of processes to start together.
 *
 * @param databaseUrl of the role that owns the schema
 * @returns the names of the applied migrations
 * @throws {Error} naming the migration that failed, which leaves nothing behind, or as {@link missingMigrations}
 */
export async function applyMigrations(databaseUrl: string): Promise<string[]> {
  return withClient(databaseUrl, async (client) => {
    await client.query('SELECT pg_advisory_lock($1)', [LOCKS.migrations]);
    await client.query(HISTORY);
    const missing = await missingMigrations(client);
    for (const migration of missing) await applyOne(client, migration);
    return missing.map(({ name }) => name);
  });
}

/**
 * The migrations that the database lacks. Any role that may read its history can ask.
 *
 * @throws {Error} if this version cannot work with the database, because its history has a migration that this version
 *   doesn't have, or has with other statements
 */
export async function missingMigrations(client: pg.Client): Promise<Migration[]> {
  const migrations = await readMigrations(projectPath('prisma/migrations'));
  const history = `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS exists`;
  if (!(await client.query<{ exists: boolean }>(history)).rows[0]?.exists) return migrations;
  const { rows } = await client.query<{ name: string; checksum: string }>(APPLIED);
  const ours = new Map(migrations.map(({ name, checksum }) => [name, checksum]));
  const foreign = rows.find(({ name, checksum }) => ours.get(name) !== checksum);
  if (foreign) throw new Error(refusal(foreign.name, migrations));
  const applied = new Set(rows.map(({ name }) => name));
  return migrations.filter(({ name }) => !applied.has(name));
}

/** Released migrations never change, so a foreign one is of a later version, or of a clone from before the release. */
function refusal(foreign: string, ours: readonly Migration[]): string {
  const isNewer = ours.every(({ name }) => name < foreign);
  return isNewer
    ? `The database was migrated by a newer version of notebridge (migration ${foreign}): start that version, or restore the backup from before its migration`
    : `The database was made by a development version of notebridge (migration ${foreign}): delete .data in a clone, or use an empty database`;
}

async function readMigrations(folder: string): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.flatMap((entry) => (entry.isDirectory() ? entry.name : [])).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(path.join(folder, name, 'migration.sql'), 'utf8');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}

async function applyOne(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
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
    throw new Error(`The migration ${name} failed and was undone: ${(error as Error).message}`, { cause: error });
  }
}
