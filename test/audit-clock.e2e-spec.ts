import { neverAnalysed, planOf } from '../harness/query-plans.js';
import { AuditRepository } from '../src/access/audit/audit.repository.js';
import type { Database } from '../src/database/database.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { openDatabase } from './support/open-database.js';
import { statementsOf } from './support/statements.js';

let database: TestDatabase;
let db: Database;
let audit: AuditRepository;

beforeEach(async () => {
  database = await freshDatabase();
  db = openDatabase(database);
  audit = new AuditRepository(db);
  await neverAnalysed(database.sql, 'audit_entries');
});
afterEach(async () => {
  await db.onApplicationShutdown();
  await database.drop();
});

/** Entries in the order of their ids. @param at the moment of entry n, as SQL */
const store = (count: number, at: string) =>
  database.sql.query(
    `INSERT INTO audit_entries (key_id, key_name, action, outcome, at)
     SELECT 'k', 'k', 'a', 'ok', ${at} FROM generate_series(1, ${count}) AS n ORDER BY n`,
  );

const found = async (bounds: { since?: string; until?: string }) =>
  (await audit.find({ ...bounds, subjects: [], limit: 1_000 })).map(({ id }) => id);

test.each(['5 minutes', '5 hours', '23 hours'])(
  'a search by time finds all that it covers, also where the clock was set back by %s',
  async (step) => {
    await store(20, `'2026-03-01T10:00:00Z'::timestamptz + n * interval '10 seconds'`);
    await store(40, `'2026-03-01T10:03:20Z'::timestamptz - interval '${step}' + n * interval '20 seconds'`);
    const { rows } = await database.sql.query<{ id: string; at: Date }>(
      'SELECT id::text AS id, at FROM audit_entries ORDER BY audit_entries.id DESC',
    );
    expect(rows).toHaveLength(60);
    for (const { at } of rows) {
      const since = rows.filter((row) => row.at >= at).map(({ id }) => id);
      const until = rows.filter((row) => row.at < at).map(({ id }) => id);
      expect(await found({ since: at.toISOString() })).toEqual(since);
      expect(await found({ until: at.toISOString() })).toEqual(until);
    }
  },
);

test('a search by time looks at the entries of a day more at each end, however many there are', async () => {
  const DAY = 1_000;
  await store(30 * DAY, `'2026-01-01T00:00:00Z'::timestamptz + n * interval '1 day' / ${DAY}`);
  const find = () =>
    audit.find({ subjects: [], since: '2026-01-15T00:00:00Z', until: '2026-01-16T00:00:00Z', limit: 2 * DAY });
  const [statement] = await statementsOf(['audit_entries'], find);
  if (!statement) throw new Error('Nothing was asked.');
  const client = await database.sql.connect();
  await client.query('SET enable_bitmapscan = off'); // as IN_ORDER_OF_INDEX does
  const plan = await planOf(client, statement, { large: ['audit_entries'], execute: true });
  client.release();
  expect(plan.fullReads).toEqual([]);
  expect(plan.rowsRead).toBeLessThan(4 * DAY);
});
