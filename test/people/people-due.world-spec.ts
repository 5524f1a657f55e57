import type { PoolClient } from 'pg';
import { Clock } from '../../src/config/clock.js';
import { Database } from '../../src/database/database.js';
import { Metrics } from '../../src/http/server/metrics.js';
import { OverviewRepository } from '../../src/operations/overview/overview.repository.js';
import { ClaimRepository } from '../../src/people/reconcile/claim.repository.js';
import { DependentsRepository } from '../../src/people/store/dependents.repository.js';
import { DuePeopleRepository } from '../../src/people/store/due-people.repository.js';
import { NEW_IMPORT } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';

/** Enough that a walk over all of them, or a sort, shows in the rows read. */
const MANY = 5_000;

/** Rows of people that one question may read: the heads of the steps, and the person just claimed. */
const FEW = 100;

const world = useWorld();
const TABLES = ['people', 'client_providers'];
let db: Database;

beforeAll(async () => {
  // As after a restore, or right after an import: the planner was told nothing.
  for (const table of TABLES) await world.sql(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
});
afterAll(async () => {
  for (const table of TABLES) await world.sql(`ALTER TABLE ${table} RESET (autovacuum_enabled)`);
});
beforeEach(async () => {
  db = world.get(Database);
  await world.sql(NEW_IMPORT);
});

/** Rows of people that this transaction has read so far, with or without an index. */
async function rowsRead(tx: Pick<PoolClient, 'query'>): Promise<number> {
  const { rows } = await tx.query(
    `SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_xact_user_tables WHERE relname = 'people'`,
  );
  return Number(rows[0]?.read ?? 0);
}

/** Runs work and counts the rows of people that its transactions and its single statements read. */
async function counted<T>(work: () => Promise<T>): Promise<{ result: T; read: number }> {
  const reads: number[] = [];
  const transaction = db.transaction.bind(db);
  const inOne = jest.spyOn(db, 'transaction').mockImplementation((body, size) =>
    transaction(async (tx) => {
      const before = await rowsRead(tx);
      const result = await body(tx);
      reads.push((await rowsRead(tx)) - before);
      return result;
    }, size),
  );
  const alone = jest.spyOn(db.pool, 'query').mockImplementation(((text: string, values: unknown[]) =>
    transaction(async (tx) => {
      const before = await rowsRead(tx);
      const result = await tx.query(text, values);
      reads.push((await rowsRead(tx)) - before);
      return result;
    })) as typeof db.pool.query);
  try {
    const result = await work();
    return { result, read: reads.reduce((sum, read) => sum + read, 0) };
  } finally {
    inOne.mockRestore();
    alone.mockRestore();
  }
}

const people = (columns: string, values: string, count = MANY) =>
  world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, email_fingerprint, ${columns})
     SELECT gen_random_uuid(), 'client', 'c-' || n, '', '', decode(md5('c' || n), 'hex'), ${values}
     FROM generate_series(1, ${count}) AS n`,
  );

/** A provider whose PUT was just accepted. */
const newcomer = () =>
  world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, email_fingerprint, lane, due_at, step)
     VALUES (gen_random_uuid(), 'provider', 'p-new', '', '', '\\x01', 'interactive', now(), 'checkUser')`,
  );

test.each([
  [
    'under a paused import',
    'state, lane, step, due_at, paused_by_import',
    "'pending', 'bulk', 'checkUser', now() - interval '1 hour', (SELECT id FROM imports)",
    '',
  ],
  [
    'behind an open circuit',
    'state, lane, step, due_at',
    "'pending', 'interactive', 'createClient', now() - interval '1 hour'",
    "INSERT INTO circuits (operation, opened_at, probe_at) VALUES ('createClient', now(), now() + interval '1 hour')",
  ],
  [
    'of an import under way',
    'state, lane, step, due_at',
    "'pending', 'bulk', NULL, now() + n * interval '1 microsecond'",
    '',
  ],
  ['all waiting for a provider', 'state, lane, due_at', "'waiting', 'bulk', NULL", ''],
  [
    'behind an import that is being paused',
    'state, lane, step, due_at',
    "'pending', 'bulk', 'checkUser', now() - interval '1 hour'",
    '',
  ],
])('with %s, the next person is found at the heads of the index', async (_state, columns, values, more) => {
  await people(columns, values);
  if (more) await world.sql(more);
  await newcomer();
  const claims = world.get(ClaimRepository);

  const first = await counted(() => claims.claimNext());
  expect(first.result.claim?.row.externalId).toBe('p-new');
  expect(first.read).toBeLessThan(FEW);

  const next = await counted(() => claims.nextInMs());
  expect(next.read).toBeLessThan(FEW);
  const due = await counted(() => world.get(DuePeopleRepository).isAnyDue());
  expect(due.read).toBeLessThan(FEW);
});

test('the age of the oldest work is read at the heads of the index, imports apart', async () => {
  await people(
    'state, lane, step, due_at',
    "'pending', 'bulk', CASE WHEN n % 2 = 0 THEN 'checkUser' END, now() - interval '1 hour' - n * interval '1 millisecond'",
  );
  const { registry } = world.get(Metrics);
  const scrape = await counted(() => registry.getSingleMetricAsString('notebridge_oldest_due_seconds'));
  expect(scrape.result).toMatch(/\{kind="people"\} 0$/m);
  expect(Number(/\{kind="bulk-people"\} (.*)$/m.exec(scrape.result)?.[1])).toBeGreaterThan(3_600);
  expect(scrape.read).toBeLessThan(FEW);

  const overview = await counted(() => world.get(OverviewRepository).read());
  expect(overview.result.oldestWork?.people).toBeInstanceOf(Date);
  expect(overview.read).toBeLessThan(FEW + 1_100); // what waits for a decision is counted up to 1,001
});

test.each([
  ['all', 'u-gone', 'deleting', 'clients-still-listed'],
  ['none', 'u-other', 'deleting', null],
])('claiming a provider for deletion counts no clients, when %s still list it', async (_who, listed, state, code) => {
  await people(
    'state, lane, platform_user_id, applied_providers, due_at',
    `'pending', 'bulk', 'u-' || n, ARRAY['${listed}'], now() + interval '1 hour'`,
  );
  await world.sql(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, wanted, platform_user_id, state, lane, due_at)
     VALUES (gen_random_uuid(), 'provider', 'p-gone', '', '', false, 'u-gone', 'deleting', 'interactive', now())`,
  );
  const claims = world.get(ClaimRepository);
  const { result, read } = await counted(() => claims.claimNext());
  expect(result.claim?.step.operation).toBe(code === null ? 'deleteUser' : undefined);
  expect(read).toBeLessThan(FEW);
  const rows = await world.sql(`SELECT state, error_code FROM people WHERE external_id = 'p-gone'`);
  expect(rows).toEqual([{ state, error_code: code }]);
});

test('a probe takes a person never refused, or refused longest ago, and reads few rows', async () => {
  await people('state, lane, step, due_at', "'pending', 'interactive', 'createClient', now() - interval '1 hour'");
  await world.sql(
    `INSERT INTO circuits (operation, opened_at, probe_at) VALUES ('createClient', now(), now() - interval '1 second')`,
  );
  await world.sql(
    `UPDATE people SET refused_at = now(), due_at = due_at - interval '1 second' WHERE external_id IN ('c-1', 'c-2')`,
  );
  const due = world.get(DuePeopleRepository);
  const probe = () =>
    counted(() => db.transaction((tx) => due.takeProber(tx, ['interactive', 'bulk'], 'createClient', world.now())));
  const first = await probe();
  const nameOf = async (id?: string) =>
    (await world.sql<{ external_id: string }>('SELECT external_id FROM people WHERE id = $1', [id]))[0]?.external_id;
  expect(['c-1', 'c-2', undefined]).not.toContain(await nameOf(first.result));
  expect(first.read).toBeLessThan(FEW);

  await world.sql("UPDATE people SET refused_at = now() - interval '1 minute' WHERE external_id = 'c-2'");
  await world.sql("UPDATE people SET lane = 'bulk' WHERE refused_at IS NULL");
  const bulkIsStopped = () => db.transaction((tx) => due.takeProber(tx, ['interactive'], 'createClient', world.now()));
  // A person in bulk was never refused: the probe waits until that lane may call.
  expect((await counted(bulkIsStopped)).result).toBeUndefined();
  await world.sql("UPDATE people SET due_at = now() + interval '1 hour' WHERE refused_at IS NULL");
  const second = await counted(bulkIsStopped);
  expect(await nameOf(second.result)).toBe('c-2');
  expect(second.read).toBeLessThan(FEW);
});

test('a grant is the last question of its transaction', async () => {
  await newcomer();
  const all: string[][] = [];
  const transaction = db.transaction.bind(db);
  const spy = jest.spyOn(db, 'transaction').mockImplementation((body, size) =>
    transaction((tx) => {
      const said: string[] = [];
      all.push(said);
      const query = tx.query.bind(tx);
      const heard = ((asked: string | { text: string }, values: unknown[]) => {
        said.push((typeof asked === 'string' ? asked : asked.text).trim());
        return query(asked as string, values);
      }) as typeof tx.query;
      return body(new Proxy(tx, { get: (of, key) => (key === 'query' ? heard : Reflect.get(of, key)) }));
    }, size),
  );
  const { claim } = await world.get(ClaimRepository).claimNext();
  spy.mockRestore();
  expect(claim).not.toBeNull();
  const isGrant = (text: string) => text.startsWith('INSERT INTO platform_calls');
  const said = all.find((texts) => texts.some(isGrant)) ?? [];
  const grant = said.findIndex(isGrant);
  expect(grant).toBeGreaterThan(0);
  expect(said.slice(grant + 1).filter((text) => !text.startsWith('UPDATE'))).toEqual([]);
});

test('the time of the next turn depends only on the clock of the database', async () => {
  await newcomer();
  await world.sql("UPDATE people SET due_at = now() + interval '1 hour'");
  const ahead = jest.spyOn(world.get(Clock), 'now').mockReturnValue(new Date(world.now().getTime() + 7_200_000));
  const inMs = await world.get(ClaimRepository).nextInMs();
  ahead.mockRestore();
  expect(inMs).toBeGreaterThan(3_500_000);
  expect(inMs).toBeLessThanOrEqual(3_600_000);
});

test('clients waiting for a provider are woken after its transaction, in small batches', async () => {
  const rows = await world.sql<{ id: string }>(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state)
     VALUES (gen_random_uuid(), 'provider', 'p-1', '', '', 'u-1', 'synced'), (gen_random_uuid(), 'provider', 'p-2', '', '', NULL, 'pending')
     RETURNING id`,
  );
  const [ready = '', other = ''] = rows.map(({ id }) => id);
  await people('state, lane, error_code', "'waiting', 'bulk', 'provider-not-mirrored'");
  await world.sql(
    `INSERT INTO client_providers (client_id, position, provider_id) SELECT id, 0, $1 FROM people WHERE kind = 'client'`,
    [ready],
  );
  // One waits for another provider, too.
  await world.sql(
    `INSERT INTO client_providers (client_id, position, provider_id) SELECT id, 1, $1 FROM people WHERE external_id = 'c-1'`,
    [other],
  );
  const dependents = world.get(DependentsRepository);

  const noted = await counted(() => db.transaction((tx) => dependents.noteClientsOf(tx, ready)));
  expect(noted.read).toBe(1); // the provider, for the foreign key

  let woken = 0;
  for (let batches = 0; ; batches++) {
    const { result, read } = await counted(() => dependents.requeueClients());
    if (result === undefined) break;
    expect(read).toBeLessThan(2_000);
    woken += result;
    expect(batches).toBeLessThan(MANY / 10);
  }
  expect(woken).toBe(MANY - 1);
  const due = await world.sql(
    'SELECT count(*)::int AS due, bool_and(due_at = wanted_at) AS placed FROM people WHERE due_at IS NOT NULL',
  );
  expect(due).toEqual([{ due: MANY - 1, placed: true }]);
});

test('the search for overlooked clients reads one slice of them at a time, then the next', async () => {
  const rows = await world.sql<{ id: string }>(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state)
     VALUES (gen_random_uuid(), 'provider', 'p-1', '', '', 'u-1', 'synced'), (gen_random_uuid(), 'provider', 'p-2', '', '', NULL, 'pending')
     RETURNING id`,
  );
  const [ready = '', other = ''] = rows.map(({ id }) => id);
  await people('state, lane', "'waiting', 'bulk'", 5_000);
  await world.sql(
    `INSERT INTO client_providers (client_id, position, provider_id)
     SELECT id, 0, CASE WHEN external_id = 'c-999' THEN $1::uuid ELSE $2 END FROM people WHERE kind = 'client'`,
    [ready, other],
  );
  const dependents = world.get(DependentsRepository);
  const due = () => world.sql('SELECT external_id FROM people WHERE due_at IS NOT NULL');
  for (let rounds = 0; (await due()).length === 0; rounds++) {
    const { read } = await counted(() => dependents.requeueOverlooked());
    expect(read).toBeLessThan(5_000);
    expect(rounds).toBeLessThan(6);
  }
  expect(await due()).toEqual([{ external_id: 'c-999' }]);
});
