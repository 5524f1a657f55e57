import { asIfThereWere, planOf, type Statement } from '../harness/query-plans.js';
import { Env } from '../src/config/env.js';
import type { Database } from '../src/database/database.js';
import { Feed } from '../src/feed/feed.js';
import { retentionRules } from '../src/operations/retention-rules.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { openDatabase } from './support/open-database.js';
import { statementsOf } from './support/statements.js';

const ROWS = 50_000;
const MILLION = 1_000_000;

/** Rows, and pages, that one statement may look at: the tables and their indexes have hundreds of pages. */
const FEW = 100;

const FILL = {
  feed_events: `INSERT INTO feed_events (cursor, type, subject, data)
    SELECT n, 'person.synced', 'clients/c-' || n, '{}' FROM generate_series(1, ${ROWS}) AS n`,
  session_calls: `INSERT INTO session_calls (session, operation, begun_at, outcome)
    SELECT gen_random_uuid(), 'getSession', now() - n * interval '1 minute', 'answered' FROM generate_series(1, ${ROWS}) AS n`,
};

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await freshDatabase();
  db = openDatabase(database);
});
afterAll(async () => {
  await db.onApplicationShutdown();
  await database.drop();
});

const questions: Record<keyof typeof FILL, () => Promise<Statement | undefined>> = {
  // A page of an export: the last events of one client.
  feed_events: async () => {
    const subjects = [`clients/c-${ROWS}`, 'sessions/of-no-event'];
    return (await statementsOf(['feed_events'], () => new Feed(db).about(subjects, '0', 500)))[0];
  },
  // Nothing is old enough, as at most times.
  session_calls: async () => ({
    text: retentionRules(Object.assign(new Env(), { RETENTION_DAYS: 90 })).sessionCalls?.statement ?? '',
    values: [new Date('2020-01-01')],
  }),
};

describe.each(Object.keys(FILL) as (keyof typeof FILL)[])('of %s', (table) => {
  beforeAll(() => database.sql.query(FILL[table]));

  test.each([false, true])('what is looked for is found by its index (analysed: %s)', async (analysed) => {
    await asIfThereWere(MILLION, database.sql, { table, analysed });
    const statement = await questions[table]();
    if (!statement) throw new Error('Nothing was asked.');
    const client = await database.sql.connect();
    const plan = await planOf(client, statement, { large: [table], execute: true });
    client.release();
    expect(plan.fullReads).toEqual([]);
    expect(plan.rowsRead).toBeLessThan(FEW);
    expect(plan.pagesRead).toBeLessThan(FEW);
  });
});
