import pg from 'pg';
import { until } from '../harness/until.js';
import { shuffledRows } from '../src/imports/run/import-runner.service.js';
import { PeopleService } from '../src/people/api/people.service.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from './support/bulk.js';
import { backendPid, freshDatabase, pidsBlockedBy, query, type TestDatabase } from './support/databases.js';
import { type ImportsApp, startImports } from './support/imports-app.js';

/** Clients of an import, and how many batches those take at least. */
const CLIENTS = 2_600;

let home: TestDatabase;
let app: ImportsApp;
let holder: pg.Client;

beforeEach(async () => {
  home = await freshDatabase();
  app = await startImports(home.url);
  holder = new pg.Client({ connectionString: home.url });
  await holder.connect();
});

afterEach(async () => {
  await holder.end();
  await app.close();
  await home.drop();
});

const people = () => app.app.get(PeopleService);
const profile = { email: null, firstName: 'Cleo', lastName: 'Now' };

const count = async (where: string, table = 'people'): Promise<number> =>
  (await query<{ n: number }>(home, `SELECT count(*)::int AS n FROM ${table} WHERE ${where}`))[0]?.n ?? -1;

/** An import of clients that stops where the last of them is to be wanted, behind at least one batch that is done. */
async function stopped(): Promise<{ id: string; done: Promise<void>; held: string; workerPid: number }> {
  await people().put({ kind: 'provider', externalId: 'p-1' }, { ...profile, email: 'p-1@example.org' });
  const clients = many(CLIENTS, 'c');
  const id = await app.stage({}, [
    providersCsv([providerLine('p-2')]),
    clientsCsv(clients.map((one) => clientLine(one, ['p-1', 'p-2'], `${one}@example.org`))),
  ]);
  // Whoever claims an email first is waited for: a batch stops in its middle, with its locks.
  const held = await emailOfLastBatch(id);
  await holder.query('BEGIN');
  await holder.query(
    `WITH other AS (INSERT INTO people (id, kind, external_id, profile, profile_hash)
       VALUES (gen_random_uuid(), 'provider', 'other', '', '') RETURNING id)
     INSERT INTO email_claims (fingerprint, person_id)
     SELECT email_fingerprint, other.id FROM import_rows, other WHERE import_id = $1 AND external_id = $2`,
    [id, held],
  );
  const done = app.steps.prepareAll();
  const holderPid = await backendPid(holder);
  const workerPid = await until('the import waits', async () => (await pidsBlockedBy(home.sql, holderPid))[0]);
  return { id, done, held, workerPid };
}

/** Somebody of the last batch, as the order of people has it. */
async function emailOfLastBatch(id: string): Promise<string> {
  const rows = await query<{ no: number; id: string }>(
    home,
    `SELECT row_no AS no, external_id AS id FROM import_rows WHERE import_id = $1 AND kind = 'client'`,
    [id],
  );
  const clients = new Map(rows.map((row) => [row.no, row.id]));
  const order = [...shuffledRows(CLIENTS + 1)].map((row) => clients.get(row));
  return order.findLast((client) => client !== undefined) ?? '';
}

test('an import is applied in batches that commit: who is in another batch is changed meanwhile, and nobody goes', async () => {
  const { id, done, held } = await stopped();
  const applied = await count(`applied AND external_id <> '${held}'`, 'import_rows');
  expect(applied).toBeGreaterThan(1_000);
  expect(applied).toBeLessThan(CLIENTS);
  const [one] = await query<{ id: string }>(
    home,
    `SELECT external_id AS id FROM import_rows WHERE import_id = '${id}' AND applied AND kind = 'client' LIMIT 1`,
  );
  const changed = await people().put({ kind: 'client', externalId: one?.id ?? '' }, profile, ['p-1']);
  expect(changed.lastName).toBe('Now');
  // Whoever is not asked for at a screen waits until everybody is wanted.
  expect(await count(`paused_by_import IS NULL AND kind = 'client'`)).toBe(1);
  expect(await count(`paused_by_import = '${id}' AND kind = 'client'`)).toBe((await count(`kind = 'client'`)) - 1);
  await holder.query('ROLLBACK');
  await done;
  expect(await count(`kind = 'client' AND paused_by_import IS NULL`)).toBe(CLIENTS);
  expect(await count('applied AND person_id IS NOT NULL', 'import_rows')).toBe(CLIENTS + 1);
});

test('a worker that dies while it applies leaves nothing half done: another goes on where it was', async () => {
  const { id, done, workerPid } = await stopped();
  const before = await query<{ id: string; wanted_at: string }>(
    home,
    `SELECT external_id AS id, wanted_at::text FROM people WHERE kind = 'client' ORDER BY 1`,
  );
  await query(home, `SELECT pg_terminate_backend($1)`, [workerPid]);
  await done;
  expect(await count(`paused_by_import IS NULL AND kind = 'client'`)).toBe(0);
  await holder.query('ROLLBACK');
  await query(home, 'UPDATE imports SET attempt_at = NULL, alive_at = now() - interval $$1 minute$$');
  await app.steps.prepareAll();
  expect((await app.imports.show(id)).state).toBe('running');
  expect(await count(`kind = 'client' AND paused_by_import IS NULL`)).toBe(CLIENTS);
  const after = new Map(
    (await query<{ id: string; wanted_at: string }>(home, 'SELECT external_id AS id, wanted_at::text FROM people')).map(
      (row) => [row.id, row.wanted_at],
    ),
  );
  // Nobody is wanted anew.
  expect(before.filter((row) => after.get(row.id) !== row.wanted_at)).toEqual([]);
  expect(await count('NOT applied', 'import_rows')).toBe(0);
});

test.each(['cancel', 'pause'] as const)('an import can be steered in the middle of its apply: %s', async (verb) => {
  const { id, done, workerPid } = await stopped();
  const steered = app.imports[verb](id);
  await until('the word waits for the batch', async () => (await pidsBlockedBy(home.sql, workerPid)).length > 0);
  await holder.query('ROLLBACK');
  await steered;
  await done;
  const wanted = await count(`kind = 'client'`);
  expect(wanted).toBeLessThanOrEqual(CLIENTS);
  expect(await count(`kind = 'client' AND paused_by_import = '${id}'`)).toBe(wanted);
  if (verb === 'pause') {
    await app.imports.resume(id);
    await query(home, 'UPDATE imports SET alive_at = now() - interval $$1 minute$$');
    await app.steps.prepareAll();
    expect(await count(`kind = 'client' AND paused_by_import IS NULL`)).toBe(CLIENTS);
    return;
  }
  await app.steps.countAll();
  expect(await count('true')).toBe(1);
  const view = await app.imports.show(id);
  expect([view.state, view.counts.skipped, view.counts.pending]).toEqual(['cancelled', CLIENTS + 1, 0]);
});

test('a provider whom a batch names is not deleted beside it: the deletion waits, and is refused', async () => {
  const { done, workerPid } = await stopped();
  const removal = people().remove({ kind: 'provider', externalId: 'p-1' });
  const refused = expect(removal).rejects.toMatchObject({ status: 409 });
  await until('the deletion waits, too', async () => (await pidsBlockedBy(home.sql, workerPid)).length > 0);
  await holder.query('ROLLBACK');
  await done;
  await refused;
});

test('a provider who is deleted between two batches takes nobody along: whoever names it is left for a retry', async () => {
  const id = await app.stage({ dryRun: true }, [
    providersCsv([providerLine('p-2')]),
    clientsCsv([clientLine('c-1', ['p-2']), clientLine('c-2', ['p-1']), clientLine('c-3', ['p-2', 'p-1'])]),
  ]);
  // The rows that name p-1 were planned while it was there.
  await people().put({ kind: 'provider', externalId: 'p-1' }, { ...profile, email: 'p-1@example.org' });
  await app.steps.prepareAll();
  await people().remove({ kind: 'provider', externalId: 'p-1' });
  await app.imports.apply(id, ['creates']);
  await app.steps.prepareAll();
  const rows = await query<{ id: string; code: string | null }>(
    home,
    `SELECT external_id AS id, code FROM import_rows WHERE kind = 'client' ORDER BY row_no`,
  );
  expect(rows.map(({ id, code }) => [id, code])).toEqual([
    ['c-1', null],
    ['c-2', 'changed-since-plan'],
    ['c-3', 'changed-since-plan'],
  ]);
});
