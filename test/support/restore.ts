import type pg from 'pg';
import { withClient } from '../../src/database/session.js';

/** The tables with rows of their own, each behind those that it names. */
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
    if (next.length === 0) throw new Error('Foreign keys go round in a circle.');
    ordered.push(...next.map(({ name }) => name));
  }
  return ordered;
}

/** What the tables hold, as JSON, each table behind those that it names; the queues' own are left out. */
async function dump(client: pg.ClientBase): Promise<[table: string, rows: string][]> {
  const dumped: [string, string][] = [];
  for (const table of await tablesInOrder(client)) {
    const { rows } = await client.query<{ all: string }>(
      `SELECT coalesce(jsonb_agg(t ORDER BY t::text), '[]')::text AS all FROM ${table} t`,
    );
    dumped.push([table, rows[0]?.all ?? '']);
  }
  return dumped;
}

/**
 * Copies what one database holds, as it is at one moment, into another with the same empty tables, while their foreign
 * keys are looked at: what `pg_dump` and `pg_restore` do with the rows.
 */
export async function restore(fromUrl: string, toUrl: string): Promise<void> {
  await withClient(fromUrl, (from) =>
    withClient(toUrl, async (to) => {
      await from.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const dumped = await dump(from);
      for (const [table, rows] of dumped) {
        await to.query(`INSERT INTO ${table} SELECT * FROM jsonb_populate_recordset(NULL::${table}, $1)`, [rows]);
      }
      const { rows: sequences } = await from.query<{ name: string; last: string }>(
        `SELECT sequencename AS name, last_value AS last FROM pg_sequences
         WHERE schemaname = 'public' AND last_value IS NOT NULL`,
      );
      for (const { name, last } of sequences) await to.query('SELECT setval($1::regclass, $2)', [name, last]);
      expect(await dump(to)).toEqual(dumped);
    }),
  );
}
