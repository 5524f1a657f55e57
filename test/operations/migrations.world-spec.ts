import { withClient } from '../../src/database/connect/session.js';
import { applyMigrations, missingMigrations } from '../../src/database/migrations.js';
import { createDatabase, freshDatabase, query, type TestDatabase } from '../support/databases.js';

let database: TestDatabase;

afterEach(() => database.drop());

const tables = async () => {
  const rows = await query(database, `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`);
  return rows.map(({ tablename }) => tablename);
};

test('processes that migrate at the same time apply each migration once', async () => {
  database = await createDatabase(process.env.TEST_PG_URL ?? '');
  const applied = await Promise.all([applyMigrations(database.url), applyMigrations(database.url)]);
  expect(applied.flat()).toHaveLength(1);
  expect(await withClient(database.url, missingMigrations)).toEqual([]);
  expect(await tables()).toEqual(expect.arrayContaining(['people', 'sessions', 'webhook_deliveries']));
});

test('a migration that fails is named and leaves nothing behind', async () => {
  database = await createDatabase(process.env.TEST_PG_URL ?? '');
  await query(database, 'CREATE TABLE workers ()');
  await expect(applyMigrations(database.url)).rejects.toThrow(/^The migration \d+_initial failed and was undone: /);
  expect(await tables()).toEqual(['_prisma_migrations', 'workers']);
});

const NEWER =
  /^The database was migrated by a newer version of notebridge \(migration \d+_later\): start that version, /;
const DEVELOPMENT =
  /^The database was made by a development version of notebridge \(migration \d+_\w+\): delete \.data /;
const listed = (name: string) =>
  `INSERT INTO _prisma_migrations (id, checksum, migration_name, finished_at) VALUES ('1', '', '${name}', now())`;

test.each([
  ['lists a later migration', listed('29991231000000_later'), NEWER],
  ['lists an unknown earlier migration', listed('20261101000000_earlier'), DEVELOPMENT],
  ['lists a migration with other statements', `UPDATE _prisma_migrations SET checksum = 'other'`, DEVELOPMENT],
])('a database whose history %s is refused in one sentence', async (_, change, refusal) => {
  database = await freshDatabase();
  await query(database, change);
  await expect(applyMigrations(database.url)).rejects.toThrow(refusal);
  await expect(withClient(database.url, missingMigrations)).rejects.toThrow(refusal);
});
