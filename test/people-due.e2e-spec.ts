import type { PoolClient } from 'pg';
import { until } from '../harness/until.js';
import { buildSimulator, type Simulator } from '../simulator/app.js';
import { Clock } from '../src/config/clock.js';
import { Database } from '../src/database/database.js';
import { Metrics } from '../src/http/server/metrics.js';
import { OverviewRepository } from '../src/operations/overview/overview.repository.js';
import { ClaimRepository } from '../src/people/reconcile/claim.repository.js';
import { DependentsRepository } from '../src/people/store/dependents.repository.js';
import { DuePeopleRepository } from '../src/people/store/due-people.repository.js';
import { WorkerProcess } from '../src/queue/due-rows/worker-process.js';
import { NEW_IMPORT } from './support/bulk.js';
import { contractFile } from './support/contract-file.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { type SessionsApp, startSessions } from './support/sessions-app.js';

/** Enough that a walk over all of them, or a sort, shows; how long one takes is nobody's matter here. */
const MANY = 50_000;

/** Rows of people that one question may read: heads of steps, and who was just taken. */
const FEW = 100;

let simulator: Simulator;
let database: TestDatabase;
let service: SessionsApp;
let db: Database;

beforeAll(async () => {
  simulator = await buildSimulator();
  database = await freshDatabase();
  // Nobody mirrors here but the test.
  service = await startSessions(simulator, database.url, {
    PLATFORM_CONTRACT: await contractFile(),
    USER_MANAGEMENT_CALLS_PER_MINUTE: '1000',
  });
  db = service.app.get(Database);
  // However late its heartbeats are beside statements over all of them.
  jest.spyOn(service.app.get(WorkerProcess), 'mayWork').mockReturnValue(true);
  // As after a restore, or right after an import: the planner was told nothing.
  for (const table of ['people', 'client_providers']) {
    await database.sql.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`);
  }
});

afterAll(async () => {
  await service.close();
  await simulator.close();
  await database.drop();
});

beforeEach(() => database.sql.query(`TRUNCATE people, imports, call_budgets, circuits CASCADE; ${NEW_IMPORT}`));

/** Rows of people that a connection read of late, over indexes or not: what two readings differ by was read between. */
async function rowsRead(tx: Pick<PoolClient, 'query'>): Promise<number> {
  const { rows } = await tx.query(
    `SELECT seq_tup_read + idx_tup_fetch AS read FROM pg_stat_xact_user_tables WHERE relname = 'people'`,
  );
  return Number(rows[0]?.read ?? 0);
}

/** Runs work and counts the rows of people that its transactions and its single statements read. */
async function counted<T>(work: () => Promise<T>): Promise<{ result: T; read: number }> {
  // One part for each: a sum that is read before a wait and written after it loses what the service's own work adds.
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
  database.sql.query(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, email_fingerprint, ${columns})
     SELECT gen_random_uuid(), 'client', 'c-' || n, '', '', decode(md5('c' || n), 'hex'), ${values}
     FROM generate_series(1, ${count}) AS n`,
  );

/** A provider whose PUT was just accepted. */
const newcomer = () =>
  database.sql.query(
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
    'behind an import that somebody pauses just now',
    'state, lane, step, due_at',
    "'pending', 'bulk', 'checkUser', now() - interval '1 hour'",
    '',
  ],
])('with %s, who is next is found at the heads of the index', async (_state, columns, values, more) => {
  await people(columns, values);
  if (more) await database.sql.query(more);
  await newcomer();
  const claims = service.app.get(ClaimRepository);

  const first = await counted(() => claims.claimNext());
  expect(first.result.claim?.row.externalId).toBe('p-new');
  expect(first.read).toBeLessThan(FEW);

  const next = await counted(() => claims.nextInMs());
  expect(next.read).toBeLessThan(FEW);
  const someone = await counted(() => service.app.get(DuePeopleRepository).isAnyDue());
  expect(someone.read).toBeLessThan(FEW);
});

test('since when the oldest work has been due is found at the heads of the index, that of imports apart', async () => {
  await people(
    'state, lane, step, due_at',
    "'pending', 'bulk', CASE WHEN n % 2 = 0 THEN 'checkUser' END, now() - interval '1 hour' - n * interval '1 millisecond'",
  );
  const { registry } = service.app.get(Metrics);
  const scrape = await counted(() => registry.getSingleMetricAsString('notebridge_oldest_due_seconds'));
  expect(scrape.result).toMatch(/\{kind="people"\} 0$/m);
  expect(Number(/\{kind="bulk-people"\} (.*)$/m.exec(scrape.result)?.[1])).toBeGreaterThan(3_600);
  expect(scrape.read).toBeLessThan(FEW);

  // What a busy machine has no time for is not known at that look.
  const overview = await until('the oldest work is known', async () => {
    const look = await counted(() => service.app.get(OverviewRepository).read());
    return look.result.oldestWork ? look : undefined;
  });
  expect(overview.result.oldestWork?.people).toBeInstanceOf(Date);
  expect(overview.read).toBeLessThan(FEW + 1_100); // what waits for a decision is counted up to 1,001
});

test.each([
  ['all', 'u-gone', 'deleting', 'clients-still-listed'],
  ['none', 'u-other', 'deleting', null],
])(
  'a provider who is to be deleted is looked at without a count of clients, when %s are to lose it',
  async (_who, listed, state, code) => {
    await people(
      'state, lane, platform_user_id, applied_providers, due_at',
      `'pending', 'bulk', 'u-' || n, ARRAY['${listed}'], now() + interval '1 hour'`,
    );
    await database.sql.query(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, wanted, platform_user_id, state, lane, due_at)
     VALUES (gen_random_uuid(), 'provider', 'p-gone', '', '', false, 'u-gone', 'deleting', 'interactive', now())`,
    );
    const claims = service.app.get(ClaimRepository);
    const { result, read } = await counted(() => claims.claimNext());
    expect(result.claim?.step.operation).toBe(code === null ? 'deleteUser' : undefined);
    expect(read).toBeLessThan(FEW);
    const { rows } = await database.sql.query(`SELECT state, error_code FROM people WHERE external_id = 'p-gone'`);
    expect(rows).toEqual([{ state, error_code: code }]);
  },
);

test('a probe goes to who was never refused or longest ago, without a look at everybody behind the circuit', async () => {
  await people('state, lane, step, due_at', "'pending', 'interactive', 'createClient', now() - interval '1 hour'");
  await database.sql.query(
    `INSERT INTO circuits (operation, opened_at, probe_at) VALUES ('createClient', now(), now() - interval '1 second')`,
  );
  await database.sql.query(
    `UPDATE people SET refused_at = now(), due_at = due_at - interval '1 second' WHERE external_id IN ('c-1', 'c-2')`,
  );
  const due = service.app.get(DuePeopleRepository);
  const probe = () =>
    counted(() => db.transaction((tx) => due.takeProber(tx, ['interactive', 'bulk'], 'createClient', new Date())));
  const first = await probe();
  const nameOf = async (id?: string) =>
    (await database.sql.query('SELECT external_id FROM people WHERE id = $1', [id])).rows[0]?.external_id;
  expect(['c-1', 'c-2', undefined]).not.toContain(await nameOf(first.result));
  expect(first.read).toBeLessThan(FEW);

  await database.sql.query("UPDATE people SET refused_at = now() - interval '1 minute' WHERE external_id = 'c-2'");
  await database.sql.query("UPDATE people SET lane = 'bulk' WHERE refused_at IS NULL");
  const bulkIsStopped = () => db.transaction((tx) => due.takeProber(tx, ['interactive'], 'createClient', new Date()));
  // Somebody in bulk was never refused: the probe waits until that lane may call.
  expect((await counted(bulkIsStopped)).result).toBeUndefined();
  await database.sql.query("UPDATE people SET due_at = now() + interval '1 hour' WHERE refused_at IS NULL");
  const second = await counted(bulkIsStopped);
  expect(await nameOf(second.result)).toBe('c-2');
  expect(second.read).toBeLessThan(FEW);
});

test('nothing is asked between a grant and its commit', async () => {
  await newcomer();
  // Of each transaction apart: those of the service's own work go on beside it.
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
  const { claim } = await service.app.get(ClaimRepository).claimNext();
  spy.mockRestore();
  expect(claim).not.toBeNull();
  const isGrant = (text: string) => text.startsWith('INSERT INTO platform_calls');
  const said = all.find((texts) => texts.some(isGrant)) ?? [];
  const grant = said.findIndex(isGrant);
  expect(grant).toBeGreaterThan(0);
  expect(said.slice(grant + 1).filter((text) => !text.startsWith('UPDATE'))).toEqual([]);
});

test('when the next turn can be had is told by the database’s clock alone', async () => {
  await newcomer();
  await database.sql.query("UPDATE people SET due_at = now() + interval '1 hour'");
  const ahead = jest.spyOn(service.app.get(Clock), 'now').mockReturnValue(new Date(Date.now() + 7_200_000));
  const inMs = await service.app.get(ClaimRepository).nextInMs();
  ahead.mockRestore();
  expect(inMs).toBeGreaterThan(3_500_000);
  expect(inMs).toBeLessThanOrEqual(3_600_000);
});

test('who waits for a provider is woken after its transaction, in batches that each read a few hundred people', async () => {
  const { rows } = await database.sql.query(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state)
     VALUES (gen_random_uuid(), 'provider', 'p-1', '', '', 'u-1', 'synced'), (gen_random_uuid(), 'provider', 'p-2', '', '', NULL, 'pending')
     RETURNING id`,
  );
  const [ready, other] = rows.map(({ id }) => id);
  await people('state, lane, error_code', "'waiting', 'bulk', 'provider-not-mirrored'");
  await database.sql.query(
    `INSERT INTO client_providers (client_id, position, provider_id) SELECT id, 0, $1 FROM people WHERE kind = 'client'`,
    [ready],
  );
  // One waits for somebody else, too.
  await database.sql.query(
    `INSERT INTO client_providers (client_id, position, provider_id) SELECT id, 1, $1 FROM people WHERE external_id = 'c-1'`,
    [other],
  );
  const dependents = service.app.get(DependentsRepository);

  const noted = await counted(() => db.transaction((tx) => dependents.noteClientsOf(tx, ready)));
  expect(noted.read).toBe(1); // the provider, for the foreign key

  let woken = 0;
  for (let batches = 0; ; batches++) {
    const { result, read } = await counted(() => dependents.requeueClients());
    if (result === undefined) break;
    expect(read).toBeLessThan(5_000);
    woken += result;
    expect(batches).toBeLessThan(MANY / 100);
  }
  expect(woken).toBe(MANY - 1);
  const [due] = (
    await database.sql.query(
      'SELECT count(*)::int AS due, bool_and(due_at = wanted_at) AS placed FROM people WHERE due_at IS NOT NULL',
    )
  ).rows;
  expect(due).toEqual({ due: MANY - 1, placed: true });
});

test('a look for whoever was overlooked reads a slice of those who wait, and comes round to everybody', async () => {
  const { rows } = await database.sql.query(
    `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state)
     VALUES (gen_random_uuid(), 'provider', 'p-1', '', '', 'u-1', 'synced'), (gen_random_uuid(), 'provider', 'p-2', '', '', NULL, 'pending')
     RETURNING id`,
  );
  const [ready, other] = rows.map(({ id }) => id);
  await people('state, lane', "'waiting', 'bulk'", 5_000);
  await database.sql.query(
    `INSERT INTO client_providers (client_id, position, provider_id)
     SELECT id, 0, CASE WHEN external_id = 'c-999' THEN $1::uuid ELSE $2 END FROM people WHERE kind = 'client'`,
    [ready, other],
  );
  const dependents = service.app.get(DependentsRepository);
  const due = async () => (await database.sql.query('SELECT external_id FROM people WHERE due_at IS NOT NULL')).rows;
  for (let rounds = 0; (await due()).length === 0; rounds++) {
    const { read } = await counted(() => dependents.requeueOverlooked());
    expect(read).toBeLessThan(5_000);
    expect(rounds).toBeLessThan(6);
  }
  expect(await due()).toEqual([{ external_id: 'c-999' }]);
});
