import { randomUUID } from 'node:crypto';
import { until } from '../harness/until.js';
import type { Database } from '../src/database/database.js';
import type { ImportsRepository } from '../src/imports/model/imports.repository.js';
import { backendPid, pidsBlockedBy } from './support/databases.js';
import { importRepositories } from './support/import-repositories.js';

describe('an import whose turn it is, and which is being steered at that moment', () => {
  let parts: Awaited<ReturnType<typeof importRepositories>>;
  let database: Database;
  let imports: ImportsRepository;

  beforeEach(async () => {
    parts = await importRepositories();
    ({ database, imports } = parts);
  });

  afterEach(async () => {
    await parts.close();
  });

  async function planned(): Promise<string> {
    const id = randomUUID();
    await database.pool.query(
      `INSERT INTO imports (id, kind, mode, dry_run, state, created_by, staged_at, apply_wanted)
       VALUES ($1, 'clients', 'upsert', true, 'planned', 'admin', clock_timestamp(), true)`,
      [id],
    );
    return id;
  }

  /** Which import's turn it is found to be by somebody who asks while the first one is steered. */
  async function nextWhile(first: string, steering: string): Promise<string | undefined> {
    const steerer = await database.pool.connect();
    await steerer.query('BEGIN');
    await steerer.query('SELECT 1 FROM imports WHERE id = $1 FOR UPDATE', [first]);
    const next = database.transaction(async (tx) => (await imports.beginNext(tx))?.id);
    const isAnswered = { yes: false };
    void next.finally(() => {
      isAnswered.yes = true;
    });
    const pid = await backendPid(steerer);
    await until(
      'it waits or answers',
      async () => isAnswered.yes || (await pidsBlockedBy(database.pool, pid)).length > 0,
    );
    await steerer.query(steering, [first]);
    await steerer.query('COMMIT');
    steerer.release();
    return next;
  }

  test('is waited for: the one behind it does not overtake it', async () => {
    const [first] = [await planned(), await planned()];
    expect(await nextWhile(first, 'UPDATE imports SET overrides = overrides WHERE id = $1')).toBe(first);
  });

  test('leaves its turn to the one behind it, when it was cancelled', async () => {
    const [first, second] = [await planned(), await planned()];
    expect(await nextWhile(first, `UPDATE imports SET state = 'cancelled' WHERE id = $1`)).toBe(second);
  });
});
