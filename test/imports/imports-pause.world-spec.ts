import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { Database } from '../../src/database/database.js';
import { ImportsService } from '../../src/imports/report/imports.service.js';
import { ImportRunner } from '../../src/imports/run/import-runner.service.js';
import { ClaimRepository } from '../../src/people/reconcile/claim.repository.js';
import { useWorld } from '../world/use-world.js';

/** Enough to reveal a statement over all of them. */
const MANY = 50_000;

/** Maximum rows that one transaction may read and write: a few times a batch. */
const BATCH = 6_000;

const world = useWorld();
let holder: pg.Client;
let imports: ImportsService;
let runner: ImportRunner;

beforeAll(async () => {
  holder = new pg.Client({ connectionString: world.database.url });
  await holder.connect();
  // As right after an import, without statistics.
  for (const table of ['people', 'import_rows'])
    await world.sql(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
  [imports, runner] = [world.get(ImportsService), world.get(ImportRunner)];
});

afterAll(async () => {
  await holder.end();
  for (const table of ['people', 'import_rows']) await world.sql(`ALTER TABLE ${table} RESET (autovacuum_enabled)`);
});

afterEach(() => holder.query('ROLLBACK'));

/** A running import before its first call. */
async function running(count: number): Promise<string> {
  const id = randomUUID();
  await holder.query(
    `INSERT INTO imports (id, kind, mode, dry_run, state, staged_at, applied_at, created_by)
     VALUES ($1, 'clients', 'upsert', false, 'running', now(), now(), 'test')`,
    [id],
  );
  await holder.query(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, email_fingerprint, state, lane, step, due_at)
     SELECT gen_random_uuid(), 'provider', 'p-' || n, '', '', decode(md5('p' || n), 'hex'), 'pending', 'bulk', 'checkUser',
       now() - interval '1 hour' + n * interval '1 microsecond' FROM generate_series(1, $1) AS n`,
    [count],
  );
  await holder.query(
    `INSERT INTO import_rows (import_id, row_no, file, line, kind, external_id, planned, person_id, person_wanted_at, applied)
     SELECT $1, substr(external_id, 3)::int, 1, 1, kind, external_id, 'create-or-link', id, wanted_at, true FROM people`,
    [id],
  );
  return id;
}

const pausedByImport = async (id: string): Promise<number> =>
  (await holder.query('SELECT count(*)::int AS n FROM people WHERE paused_by_import = $1', [id])).rows[0]?.n;

/** Rows of people and imports that each transaction of `work` read and wrote; transactions without any are left out. */
async function rowsOfEach(work: () => Promise<unknown>): Promise<number[]> {
  const counted: number[] = [];
  const database = world.get(Database);
  const transaction = database.transaction.bind(database);
  const spy = jest.spyOn(database, 'transaction').mockImplementation((body, size) =>
    transaction(async (tx) => {
      const rows = async () =>
        Number(
          (
            await tx.query(
              `SELECT sum(seq_tup_read + idx_tup_fetch + n_tup_upd) AS rows FROM pg_stat_xact_user_tables
               WHERE relname IN ('people', 'import_rows')`,
            )
          ).rows[0]?.rows ?? 0,
        );
      const before = await rows();
      const result = await body(tx);
      const touched = (await rows()) - before;
      if (touched > 0) counted.push(touched);
      return result;
    }, size),
  );
  await work().finally(() => spy.mockRestore());
  return counted;
}

const turn = async (): Promise<string | undefined> => {
  await world.advance('1 ms');
  const { claim } = await world.get(ClaimRepository).claimNext();
  return claim?.row.externalId;
};

test('pause and resume change one row; people follow in batches of a thousand', async () => {
  const id = await running(MANY);
  const follow = () => runner.steerAll();

  expect(await rowsOfEach(() => imports.pause(id))).toEqual([]);
  const held = await rowsOfEach(follow);
  expect(Math.max(...held)).toBeLessThan(BATCH);
  expect(held.length).toBeGreaterThanOrEqual(MANY / 1_000);
  expect(await pausedByImport(id)).toBe(MANY);

  expect(await rowsOfEach(() => imports.resume(id))).toEqual([]);
  const letGo = await rowsOfEach(follow);
  expect(Math.max(...letGo)).toBeLessThan(BATCH);
  expect(await pausedByImport(id)).toBe(0);

  expect(await rowsOfEach(() => imports.cancel(id))).toEqual([]);
  expect(Math.max(...(await rowsOfEach(follow)))).toBeLessThan(BATCH);
  expect(await pausedByImport(id)).toBe(MANY);
});

test.each(['pause', 'cancel'] as const)(
  'makes no call after %s has answered, before its people follow',
  async (verb) => {
    const id = await running(MANY);
    expect(await turn()).toBe('p-1');
    await imports[verb](id);
    await holder.query('UPDATE call_budgets SET bulk_next_at = now()');
    // People found due are then held back, a limited number at a time.
    const counts = await rowsOfEach(async () => {
      for (let turns = 0; turns < 6; turns++) expect(await turn()).toBeUndefined();
    });
    expect(Math.max(...counts)).toBeLessThan(1_000);
    expect(await pausedByImport(id)).toBe(300);
    await runner.steerAll();
    expect(await pausedByImport(id)).toBe(MANY);
    await holder.query(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, email_fingerprint, lane, due_at, step)
     VALUES (gen_random_uuid(), 'provider', 'another', '', '', '\\x01', 'bulk', now(), 'checkUser')`,
    );
    expect(await turn()).toBe('another');
  },
);

test('a pause waits for the grant in progress and precedes any other', async () => {
  const id = await running(3);
  expect(await turn()).toBe('p-1');
  await holder.query('BEGIN');
  await holder.query('SELECT 1 FROM call_budgets FOR UPDATE');
  let answered = false;
  const paused = imports.pause(id).then(() => {
    answered = true;
  });
  await world.untilBlocked();
  expect(answered).toBe(false);
  await holder.query('COMMIT');
  await paused;
  await holder.query('UPDATE call_budgets SET bulk_next_at = now()');
  expect(await turn()).toBeUndefined();
});

test('after a crash between batches, another worker continues', async () => {
  const id = await running(2_500);
  await imports.pause(id);
  // The last person of the second batch is locked, and the connection that waits for it is killed.
  await holder.query('BEGIN');
  await holder.query(`SELECT 1 FROM people WHERE external_id = 'p-2000' FOR UPDATE`);
  const follow = runner.steerAll();
  const failed = expect(follow).rejects.toThrow();
  await world.sql('SELECT pg_terminate_backend($1)', [await world.untilBlocked()]);
  await failed;
  await holder.query('ROLLBACK');
  expect(await pausedByImport(id)).toBe(1_000);
  expect((await rowsOfEach(() => runner.steerAll())).length).toBe(2);
  expect(await pausedByImport(id)).toBe(2_500);
});

test('an import that finishes during its pause holds no one back', async () => {
  const id = await running(2);
  await imports.pause(id);
  await runner.countAll();
  await holder.query(`UPDATE people SET state = 'synced', origin = 'created', step = NULL, due_at = NULL`);
  await world.settle();
  expect((await imports.show(id)).state).toBe('completed');
  expect(await pausedByImport(id)).toBe(0);
});
