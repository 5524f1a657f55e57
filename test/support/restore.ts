import type pg from 'pg';
import { withClient } from '../../src/database/connect/session.js';

/** The tables, each after those that its foreign keys reference. */
async function tablesInOrder(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string; parents: string[] }>(
    `SELECT c.oid::regclass::text AS name, ARRAY(
       SELECT DISTINCT confrelid::regclass::text FROM pg_constraint
       WHERE conrelid = c.oid AND confrelid <> c.oid AND contype = 'f') AS parents
     FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname <> '_prisma_migrations'
     ORDER BY name`,
  );
  const ordered: string[] = [];
  while (ordered.length < rows.length) {
    const next = rows.filter(
      ({ name, parents }) => !ordered.includes(name) && parents.every((parent) => ordered.includes(parent)),
    );
    if (next.length === 0) throw new Error('Foreign keys form a cycle.');
    ordered.push(...next.map(({ name }) => name));
  }
  return ordered;
}

/** Tables with their rows as JSON. */
type Dump = [table: string, rows: string][];

/** The rows of all tables except those of the queues. */
async function dump(client: pg.ClientBase): Promise<Dump> {
  const dumped: Dump = [];
  for (const table of await tablesInOrder(client)) {
    const { rows } = await client.query<{ all: string }>(
      `SELECT coalesce(jsonb_agg(t ORDER BY t::text), '[]')::text AS all FROM ${table} t`,
    );
    dumped.push([table, rows[0]?.all ?? '']);
  }
  return dumped;
}

/** Inserts dumped rows into the same tables, which are empty. */
async function load(client: pg.ClientBase, dumped: Dump): Promise<void> {
  for (const [table, rows] of dumped) {
    await client.query(`INSERT INTO ${table} SELECT * FROM jsonb_populate_recordset(NULL::${table}, $1)`, [rows]);
  }
}

async function sequencesOf(client: pg.ClientBase): Promise<Backup['sequences']> {
  const { rows } = await client.query<{ name: string; last: string }>(
    `SELECT sequencename AS name, last_value AS last FROM pg_sequences
     WHERE schemaname = 'public' AND last_value IS NOT NULL`,
  );
  return rows;
}

/** The content of a database at one time. */
export interface Backup {
  dumped: Dump;
  sequences: { name: string; last: string }[];
}

/** Reads the content of a database at one time. */
export const backUp = (url: string): Promise<Backup> =>
  withClient(url, async (from) => {
    await from.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    return { dumped: await dump(from), sequences: await sequencesOf(from) };
  });

/** Restores a backup into the same tables, which are empty. */
export const putBack = (url: string, { dumped, sequences }: Backup): Promise<void> =>
  withClient(url, async (to) => {
    await load(to, dumped);
    for (const { name, last } of sequences) await to.query('SELECT setval($1::regclass, $2)', [name, last]);
    expect(await dump(to)).toEqual(dumped);
  });
