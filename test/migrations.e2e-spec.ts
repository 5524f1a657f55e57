import { until } from '../harness/until.js';
import { applyMigrations } from '../src/database/migrations.js';
import { freshDatabase, query, type TestDatabase } from './support/databases.js';

const MIGRATION = '20261123185001_call_attempts_index';
const INDEX = 'session_calls_attempt_key';
const WRITE = `INSERT INTO session_calls (session, operation, begun_at, outcome, attempt)
  VALUES (gen_random_uuid(), 'createSession', now(), 'answered', 1)`;

describe('a migration that builds an index', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await freshDatabase();
  });

  beforeEach(() => query(database, `DELETE FROM _prisma_migrations WHERE migration_name = '${MIGRATION}'`));

  afterAll(() => database.drop());

  const isValid = async () => {
    const [index] = await query(database, `SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('${INDEX}')`);
    return index?.indisvalid;
  };

  it('lets others write meanwhile, and any number of processes migrate at once', async () => {
    await query(database, `DROP INDEX ${INDEX}`);
    const writer = await database.sql.connect();
    await writer.query(`BEGIN; ${WRITE}`);
    const migrating = Promise.all([applyMigrations(database.url), applyMigrations(database.url)]);
    await until('it waits for who writes', async () => {
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
        AND query LIKE '%CREATE UNIQUE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()`;
      return (await query(database, waiting)).length > 0;
    });
    const another = await database.sql.connect();
    await another.query(`BEGIN; SET LOCAL lock_timeout = '1s'; ${WRITE}; COMMIT`);
    await writer.query('COMMIT');
    for (const client of [writer, another]) client.release();
    expect((await migrating).flat()).toEqual([MIGRATION]);
    expect(await isValid()).toBe(true);
  });

  it('builds one anew whose first attempt broke off, and leaves one that was made by hand', async () => {
    await query(database, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = '${INDEX}'::regclass`);
    expect(await applyMigrations(database.url)).toEqual([MIGRATION]);
    expect(await isValid()).toBe(true);
    const of = `SELECT '${INDEX}'::regclass::oid AS oid`;
    const before = await query(database, of);
    await query(database, `DELETE FROM _prisma_migrations WHERE migration_name = '${MIGRATION}'`);
    expect(await applyMigrations(database.url)).toEqual([MIGRATION]);
    expect(await query(database, of)).toEqual(before);
  });
});
