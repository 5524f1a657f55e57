import type pg from 'pg';
import { runWorkload } from '../harness/workload.js';
import { withClient } from '../src/database/database.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { useMirrors } from './support/service.js';

/** Rows of these are never deleted, so nobody looks for those that name one. */
const KEPT = ['imports'];

const newMirror = useMirrors();
let empty: TestDatabase;

beforeAll(async () => {
  empty = await freshDatabase();
});
afterAll(() => empty.drop());

/** The tables with rows of their own, each behind those that it names. */
async function tablesInOrder(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string; parents: string[] }>(
    `SELECT c.oid::regclass::text AS name, ARRAY(
       SELECT DISTINCT confrelid::regclass::text FROM pg_constraint WHERE conrelid = c.oid AND contype = 'f') AS parents
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

/** Copies what one database holds into another with the same empty tables, while their foreign keys are looked at. */
async function restore(from: pg.ClientBase, to: pg.ClientBase): Promise<void> {
  for (const [table, rows] of await dump(from)) {
    await to.query(`INSERT INTO ${table} SELECT * FROM jsonb_populate_recordset(NULL::${table}, $1)`, [rows]);
  }
  const { rows: sequences } = await from.query<{ name: string; last: string }>(
    `SELECT sequencename AS name, last_value AS last FROM pg_sequences
     WHERE schemaname = 'public' AND last_value IS NOT NULL`,
  );
  for (const { name, last } of sequences) await to.query('SELECT setval($1::regclass, $2)', [name, last]);
  expect(await dump(to)).toEqual(await dump(from));
}

test('what a database holds is restored into one that was only migrated, and the service goes on there', async () => {
  const mirror = await newMirror({ platform: { stepMs: 0, webhookSecret: WEBHOOK_SECRET } });
  const first = await mirror.start();
  const target = { simulator: mirror.simulator, adminKey: ADMIN_KEY };
  await withClient(mirror.database.url, (database) => runWorkload({ ...target, service: first, database }, 'a', 5, 5));
  const { body: asked } = await first.call('GET', '/v1/clients/c-a-1');
  expect(await first.kill('SIGTERM')).toBe(0);

  await withClient(mirror.database.url, (from) => withClient(empty.url, (to) => restore(from, to)));

  const second = await mirror.start({ DATABASE_URL: empty.url });
  expect((await second.call('GET', '/v1/clients/c-a-1')).body).toEqual(asked);
  await withClient(empty.url, (database) => runWorkload({ ...target, service: second, database }, 'b', 3, 3));
  expect(await second.kill('SIGTERM')).toBe(0);
});

test('whoever is deleted is looked for by an index in every table that names it', async () => {
  const { rows } = await withClient(empty.url, (client) =>
    client.query(
      `SELECT conname AS key FROM pg_constraint k WHERE contype = 'f' AND NOT confrelid::regclass::text = ANY ($1)
         AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = k.conrelid AND i.indkey[0] = k.conkey[1])`,
      [KEPT],
    ),
  );
  expect(rows).toEqual([]);
});
