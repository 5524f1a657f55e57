import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { applyMigrations } from '../../src/database/migrations.js';
import { freshDatabase, type TestDatabase } from '../support/databases.js';

let database: TestDatabase;
let folder: string;
let reader: pg.PoolClient;

beforeEach(async () => {
  database = await freshDatabase();
  folder = await mkdtemp(path.join(tmpdir(), 'notebridge-migrations-'));
  await mkdir(path.join(folder, '20990101000000_both'));
  await writeFile(
    path.join(folder, '20990101000000_both', 'migration.sql'),
    'ALTER TABLE webhook_deliveries ADD COLUMN more TEXT; ALTER TABLE people ADD COLUMN more TEXT;',
  );
  // Like the plan of an import, or a dump: it has read people and stays idle.
  reader = await database.sql.connect();
  await reader.query('BEGIN; SELECT FROM people');
});
afterEach(async () => {
  reader.release(true);
  jest.restoreAllMocks();
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

const migrate = (tries: number) =>
  applyMigrations(database.url, { folder, patience: { tries, pauseMs: 100 } }).then(
    (applied) => applied,
    (error: Error) => error.message,
  );

test('a migration that waits for a locked table releases the others and warns once', async () => {
  const said = jest.spyOn(Logger.prototype, 'warn');
  const gaveUpOnce = new Promise<void>((resolve) => {
    said.mockImplementation(() => resolve());
  });
  const migrating = migrate(10_000);
  await gaveUpOnce;
  // Statements that wait behind it run between two tries, or within the second that a try lasts.
  for (let insert = 0; insert < 5; insert++) {
    await database.sql.query(
      `INSERT INTO webhook_deliveries (signature, body, sent_at, secret_index) VALUES ($1, '', 0, 0)`,
      [Buffer.from([insert])],
    );
  }
  await reader.query('ROLLBACK');
  expect(await migrating).toEqual(['20990101000000_both']);
  expect(said.mock.calls).toEqual([
    [expect.stringMatching(/^The migration 20990101000000_both is tried again: another transaction holds a table/)],
  ]);
});

test('a migration that never gets its tables fails with a reason and leaves nothing behind', async () => {
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  expect(await migrate(2)).toMatch(/^The migration 20990101000000_both failed and was undone: .*end that one/);
  const { rows } = await database.sql.query(`SELECT FROM information_schema.columns WHERE column_name = 'more'`);
  expect(rows).toEqual([]);
});
