import { randomUUID } from 'node:crypto';
import { Database } from '../src/database/database.js';
import { Feed } from '../src/feed/feed.js';
import { FeedRepository } from '../src/feed/feed.repository.js';
import { ImportsRepository } from '../src/imports/imports.repository.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';

const FAULT = { code: 'interrupted', detail: 'The upload broke off.' };

describe('an import fails once, and only while it is where the fault found it', () => {
  let home: TestDatabase;
  let database: Database;
  let imports: ImportsRepository;

  beforeAll(async () => {
    home = await freshDatabase();
    database = new Database(home.url);
    imports = new ImportsRepository(database, new Feed(new FeedRepository(database)));
  });

  afterAll(async () => {
    await database.onApplicationShutdown();
    await home.drop();
  });

  async function failed(fail: 'failReading' | 'failPlan', state: string, staged: boolean, applyWanted: boolean) {
    const id = randomUUID();
    await database.pool.query(
      `INSERT INTO imports (id, kind, mode, dry_run, state, created_by, staged_at, apply_wanted)
       VALUES ($1, 'clients', 'upsert', false, $2, 'admin', CASE WHEN $3 THEN now() END, $4)`,
      [id, state, staged, applyWanted],
    );
    for (let time = 0; time < 2; time++) await database.transaction((tx) => imports[fail](tx, id, FAULT));
    const after = await imports.find(id);
    const told = await database.pool.query('SELECT 1 FROM feed_events WHERE subject = $1', [`imports/${id}`]);
    return [after?.state, after?.errorCode, told.rowCount];
  }

  test.each([
    ['failReading', 'staging', false, false, 'failed'],
    ['failReading', 'staging', true, false, 'staging'],
    ['failReading', 'running', true, false, 'running'],
    ['failPlan', 'staging', true, false, 'failed'],
    ['failPlan', 'planned', true, true, 'failed'],
    ['failPlan', 'planned', true, false, 'planned'],
    ['failPlan', 'running', true, false, 'running'],
  ] as const)(
    '%s of one that is %s (read %s, to be applied %s) leaves it %s',
    async (fail, state, staged, wanted, is) => {
      const outcome = is === 'failed' ? ['failed', FAULT.code, 1] : [is, null, 0];
      expect(await failed(fail, state, staged, wanted)).toEqual(outcome);
    },
  );
});
