import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { Database } from '../../src/database/database.js';
import { ImportsRepository } from '../../src/imports/model/imports.repository.js';
import { ImportRunner, MOST_ATTEMPTS, shuffledRows } from '../../src/imports/run/import-runner.service.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { backendPid, pidsBlockedBy } from '../support/databases.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const world = useWorld();
const { start, imported, planned, steer, show, rows, outcomes, rejected } = importsIn(world);

const providers = (...ids: string[]) => providersCsv(ids.map((id) => providerLine(id)));
const person = (lastName: string, more: object = {}) => ({ firstName: 'Cleo', lastName, ...more });
const put = (path: string, body: object) => world.call('PUT', `/v1/${path}`, { body });

const count = async (where: string, table = 'people') =>
  (await world.sql(`SELECT 1 FROM ${table} WHERE ${where}`)).length;

describe('applying an import', () => {
  /** Clients of an import; two batches. */
  const CLIENTS = 1_200;

  let holder: pg.Client;

  beforeEach(async () => {
    holder = new pg.Client({ connectionString: world.database.url });
    await holder.connect();
  });
  afterEach(() => holder.end());

  /** An import of clients that stops at the last of them, after a batch that is committed. */
  async function stopped() {
    await put('providers/p-1', person('One', { email: 'p-1@example.org' }));
    const id = await start('kind=clients', [
      providers('p-2'),
      clientsCsv(many(CLIENTS, 'c').map((one) => clientLine(one, ['p-1', 'p-2'], `${one}@example.org`))),
    ]);
    const staged = await world.sql<{ no: number; id: string }>(
      `SELECT row_no AS no, external_id AS id FROM import_rows WHERE kind = 'client'`,
    );
    const clients = new Map(staged.map((row) => [row.no, row.id]));
    const last = [...shuffledRows(CLIENTS + 1)].map((row) => clients.get(row)).findLast((one) => one !== undefined);
    // The batch waits for the holder of an email, with the locks that it has by then.
    await holder.query('BEGIN');
    await holder.query(
      `WITH other AS (INSERT INTO people (id, kind, external_id, profile, profile_hash)
         VALUES (gen_random_uuid(), 'provider', 'other', '', '') RETURNING id)
       INSERT INTO email_claims (fingerprint, person_id)
       SELECT email_fingerprint, other.id FROM import_rows, other WHERE external_id = $1`,
      [last],
    );
    const done = world.get(ImportRunner).prepareAll();
    const worker = await world.eventually('the import waits', () => blockedBy(holder));
    return { id, done, last, worker };
  }

  const blockedBy = async (client: pg.Client) =>
    (await pidsBlockedBy(world.database.pool, await backendPid(client)))[0];
  const isBlocking = (pid: number) =>
    world.eventually('it waits', async () => (await pidsBlockedBy(world.database.pool, pid))[0]);
  const clientsPausedBy = (importId: string | null) =>
    count(`kind = 'client' AND paused_by_import IS NOT DISTINCT FROM ${importId === null ? 'NULL' : `'${importId}'`}`);

  test('commits in batches: people of other batches can change; their providers stay', async () => {
    const { id, done, last, worker } = await stopped();
    const applied = await world.sql<{ id: string }>(
      `SELECT external_id AS id FROM import_rows WHERE applied AND kind = 'client' AND external_id <> $1`,
      [last],
    );
    expect(applied.length).toBeGreaterThan(900);
    expect(applied.length).toBeLessThan(CLIENTS);
    const changed = await put(`clients/${applied[0]?.id}`, person('Now', { providers: ['p-1'] }));
    expect(changed.body).toMatchObject({ lastName: 'Now' });
    // Everyone else waits until all of the import is wanted.
    expect(await clientsPausedBy(null)).toBe(1);
    expect(await clientsPausedBy(id)).toBe((await count(`kind = 'client'`)) - 1);
    const removal = world.call('DELETE', '/v1/providers/p-1');
    await isBlocking(worker);
    await holder.query('ROLLBACK');
    await done;
    expect((await removal).status).toBe(409);
    expect([await clientsPausedBy(null), await count('applied', 'import_rows')]).toEqual([CLIENTS, CLIENTS + 1]);
  });

  test('continues where a worker died: no one is applied twice', async () => {
    const { id, done, worker } = await stopped();
    const wanted = () =>
      world.sql<{ id: string; at: string }>(
        `SELECT external_id AS id, wanted_at::text AS at FROM people WHERE kind = 'client'`,
      );
    const before = await wanted();
    await world.sql('SELECT pg_terminate_backend($1)', [worker]);
    await done;
    expect(await clientsPausedBy(null)).toBe(0);
    await holder.query('ROLLBACK');
    await world.advance('10 s');
    await world.work.imports();
    expect([(await show(id)).state, await clientsPausedBy(null)]).toEqual(['running', CLIENTS]);
    const after = new Map((await wanted()).map((one) => [one.id, one.at]));
    expect(before.filter((one) => after.get(one.id) !== one.at)).toEqual([]);
    expect(await count('NOT applied', 'import_rows')).toBe(0);
  });

  test.each(['cancel', 'pause'] as const)('follows a %s between two batches', async (verb) => {
    const { id, done, worker } = await stopped();
    const steered = steer(id, verb);
    await isBlocking(worker);
    await holder.query('ROLLBACK');
    await steered;
    await done;
    expect(await clientsPausedBy(id)).toBe(await count(`kind = 'client'`));
    if (verb === 'pause') {
      await steer(id, 'resume');
      await world.advance('10 s');
      await world.work.imports();
      expect(await clientsPausedBy(null)).toBe(CLIENTS);
      return;
    }
    await world.work.imports();
    expect(await count('true')).toBe(1);
    expect(await show(id)).toMatchObject({ state: 'cancelled', counts: { skipped: CLIENTS + 1, pending: 0 } });
  });

  test('skips clients of a provider who was deleted since the plan', async () => {
    await put('providers/p-1', person('One', { email: 'p-1@example.org' }));
    const { id } = await planned('kind=clients&dryRun=true', [
      providers('p-2'),
      clientsCsv([clientLine('c-1', ['p-2']), clientLine('c-2', ['p-1']), clientLine('c-3', ['p-2', 'p-1'])]),
    ]);
    await world.call('DELETE', '/v1/providers/p-1');
    await steer(id, 'apply');
    await world.work.imports();
    expect((await outcomes(id)).slice(1).map(([externalId, , code]) => [externalId, code])).toEqual([
      ['c-1', null],
      ['c-2', 'changed-since-plan'],
      ['c-3', 'changed-since-plan'],
    ]);
  });
});

describe('an import that meets a fault', () => {
  /** Has the database end each statement that plans or applies a row of a condition. @param code of a statement timeout */
  async function failWhere(row: string, code = '57014'): Promise<void> {
    await world.sql(`
      CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'late' USING ERRCODE = '${code}'; END $$;
      CREATE TRIGGER late BEFORE UPDATE ON import_rows FOR EACH ROW WHEN (${row}) EXECUTE FUNCTION late()`);
  }
  const mend = () => world.sql('DROP FUNCTION IF EXISTS late CASCADE');
  afterEach(mend);

  const health = () => world.get(ImportRunner).health();
  const state = async (id: string) => (await show(id)).state;
  const send = (...ids: string[]) => start('kind=providers', [providers(...ids)]);

  async function attempts(number: number): Promise<void> {
    for (let attempt = 0; attempt < number; attempt++) {
      await world.work.imports();
      await world.advance('11 min');
    }
  }

  test('lets others pass, is shown by health, and continues once the fault is gone', async () => {
    await failWhere(`NEW.external_id = 'p-bad'`);
    const [bad, good] = [await send('p-bad'), await send('p-2')];
    await world.work.imports();
    expect([await state(bad), await state(good)]).toEqual(['staging', 'running']);
    expect(await health()).toMatchObject({ status: 'degraded', facts: { putOff: 1 } });
    await mend();
    await world.work.imports();
    expect(await state(bad)).toBe('staging');
    await world.advance('6 s');
    await world.work.imports();
    expect([await state(bad), await health()]).toEqual(['running', { status: 'ok' }]);
  });

  test('skips people who were changed while it could not be planned', async () => {
    await failWhere(`NEW.external_id = 'p-1'`);
    const id = await send('p-1', 'p-2');
    await world.work.imports();
    await put('providers/p-1', person('Newer', { email: 'p-1@example.org' }));
    await mend();
    await world.advance('6 s');
    await world.work.imports();
    expect((await world.call('GET', '/v1/providers/p-1')).body.lastName).toBe('Newer');
    expect((await show(id)).counts).toMatchObject({ skipped: 1, pending: 1 });
  });

  test('is cancelled while it waits', async () => {
    await failWhere(`NEW.external_id = 'p-1' AND NEW.planned IS NOT NULL`);
    const id = await send('p-1');
    await world.work.imports();
    await steer(id, 'cancel');
    await world.work.imports();
    expect(await show(id)).toMatchObject({ state: 'cancelled', counts: { pending: 0, skipped: 1 } });
    expect(await health()).toEqual({ status: 'ok' });
  });

  test('fails after a bounded number of attempts to plan it', async () => {
    await failWhere(`NEW.external_id = 'p-1'`);
    const id = await send('p-1');
    await attempts(MOST_ATTEMPTS - 1);
    expect(await state(id)).toBe('staging');
    await attempts(1);
    expect(await show(id)).toMatchObject({ state: 'failed', error: { code: 'plan-failed' } });
    expect(await count('true')).toBe(0);
  });

  test('fails after a bounded number of attempts to apply it: its people are removed', async () => {
    await failWhere('NEW.applied AND NOT OLD.applied AND NEW.row_no = 1');
    const ids = many(1_100, 'p'); // the first batch does not hold the row that fails
    const { id } = await planned('kind=providers&dryRun=true', [providers(...ids)]);
    await steer(id, 'apply');
    await attempts(1);
    expect(await count('true')).toBeGreaterThan(0);
    await attempts(MOST_ATTEMPTS);
    expect(await show(id)).toMatchObject({
      ...{ state: 'failed', error: { code: 'apply-failed' } },
      counts: { pending: 0, skipped: ids.length },
    });
    expect(await count('true')).toBe(0);
  });

  test('counts an attempt whose process ended', async () => {
    const id = await send('p-1');
    for (const attempt of [1, 2]) {
      const begun = await world.get(Database).transaction((tx) => world.get(ImportsRepository).beginNext(tx));
      expect([begun?.id, begun?.attempts]).toEqual([id, attempt]);
    }
  });

  test('keeps only its rejected rows when the fault is in its data, and lets others continue', async () => {
    await failWhere(`NEW.external_id = 'c-bad'`, '22003');
    const resource = (resourceType: string, id: string, more: object) => ({ resourceType, id, ...more });
    const named = (id: string) => ({
      name: [{ given: ['A'], family: id }],
      telecom: [{ system: 'email', value: `${id}@example.org` }],
    });
    const fhir = (...resources: object[]) => {
      const content = resources.map((one) => JSON.stringify(one)).join('\n');
      return [{ name: 'a.ndjson', type: 'application/fhir+ndjson', content }];
    };
    const practitioner = resource('Practitioner', 'p-1', named('p-1'));
    const list = { generalPractitioner: [{ reference: 'Practitioner/p-1' }] };
    const bad = resource('Patient', 'c-bad', { ...named('c-bad'), ...list });
    const id = await start('kind=fhir', fhir(practitioner, bad, resource('Patient', 'c-nameless', {})));
    await world.work.imports();
    const view = await show(id);
    expect([view.state, view.error?.code, await count('true', 'import_references')]).toEqual([
      'failed',
      'plan-failed',
      0,
    ]);
    expect(await rows(id, 'outcome=rejected')).toMatchObject([{ externalId: 'c-nameless' }]);
    expect((await rejected(id))[1]).toMatch(/^client,c-nameless,/);
    await imported('kind=fhir', fhir(practitioner));
    expect([await count('true', 'import_references'), await count('true', 'import_raw_rows')]).toEqual([0, 1]);
  });

  test.each([
    ['reading', 'staging', false, false, 'failed'],
    ['reading', 'staging', true, false, 'staging'],
    ['reading', 'running', true, false, 'running'],
    ['plan', 'staging', true, false, 'failed'],
    ['plan', 'planned', true, true, 'failed'],
    ['plan', 'planned', true, false, 'planned'],
    ['plan', 'running', true, false, 'running'],
  ] as const)(
    'failed %s of an import that is %s (read %s, to be applied %s) leaves it %s, and is told once',
    async (fault, before, staged, wanted, after) => {
      const id = randomUUID();
      await world.sql(
        `INSERT INTO imports (id, kind, mode, dry_run, state, staged_at, apply_wanted)
         VALUES ($1, 'clients', 'upsert', false, $2, CASE WHEN $3 THEN now() END, $4)`,
        [id, before, staged, wanted],
      );
      const imports = world.get(ImportsRepository);
      const error = { code: 'interrupted', detail: 'The upload was interrupted.' };
      for (let time = 0; time < 2; time++)
        await world.get(Database).transaction(async (tx) => void (await imports.fail(tx, id, fault, error)));
      const told = await count(`subject = 'imports/${id}'`, 'feed_events');
      const [code, events] = after === 'failed' ? [error.code, 1] : [null, 0];
      expect(await imports.find(id)).toMatchObject({ state: after, errorCode: code });
      expect(told).toBe(events);
    },
  );
});

test.each([
  ['never overtakes one before it that is steered', 'overrides = overrides', 0],
  ['replaces one that is cancelled', `state = 'cancelled'`, 1],
])('the next import %s at that moment', async (_, change, begun) => {
  const { pool } = world.database;
  const ids = [randomUUID(), randomUUID()];
  for (const id of ids) {
    await world.advance('1 s');
    await world.sql(
      `INSERT INTO imports (id, kind, mode, dry_run, state, staged_at, apply_wanted)
       VALUES ($1, 'clients', 'upsert', true, 'planned', clock_timestamp(), true)`,
      [id],
    );
  }
  const steerer = await pool.connect();
  await steerer.query('BEGIN');
  await steerer.query('SELECT 1 FROM imports WHERE id = $1 FOR UPDATE', [ids[0]]);
  let isAnswered = false;
  const next = world.get(Database).transaction((tx) => world.get(ImportsRepository).beginNext(tx));
  void next.finally(() => {
    isAnswered = true;
  });
  const pid = await backendPid(steerer);
  await world.eventually('it waits or answers', async () => isAnswered || (await pidsBlockedBy(pool, pid)).length > 0);
  await steerer.query(`UPDATE imports SET ${change} WHERE id = $1`, [ids[0]]);
  await steerer.query('COMMIT');
  steerer.release();
  expect((await next)?.id).toBe(ids[begun]);
});

describe('the work of an import', () => {
  /** People of a smaller and a larger import. Work that is done once for each person grows as they do. */
  const FEW = 250;
  const PROVIDERS = 50;
  const MORE = 8;
  /** Plans may differ; but a statement that reads all rows for each row reads 64 times as many. */
  const MAX_GROWTH = 2.5 * MORE;
  /** Rows that any one statement may read in addition to those that grow. */
  const NOISE = 2_000;
  const TABLES = ['people', 'import_rows', 'client_providers', 'email_claims', 'import_raw_rows', 'import_references'];
  const PER_LOOP = ['Actual Rows', ...['Filter', 'Join Filter', 'Index Recheck'].map((by) => `Rows Removed by ${by}`)];
  const EXPLAIN = `LOAD 'auto_explain'; SET LOCAL auto_explain.log_min_duration = 0; SET LOCAL auto_explain.log_analyze = on;
    SET LOCAL auto_explain.log_timing = off; SET LOCAL auto_explain.log_format = json;
    SET LOCAL auto_explain.log_level = notice`;

  type PlanNode = { [name: string]: number | undefined } & { Plans?: PlanNode[] };

  const rowsThrough = ({ Plans = [], 'Actual Loops': loops = 1, ...node }: PlanNode): number =>
    PER_LOOP.reduce((sum, name) => sum + ((node as PlanNode)[name] ?? 0), 0) * loops +
    Plans.reduce((sum, child) => sum + rowsThrough(child), 0);

  /** Rows that each statement of some work went through. */
  async function counted(work: () => Promise<unknown>): Promise<Map<string, number>> {
    const sums = new Map<string, number>();
    const count = ({ message = '' }: { message?: string }) => {
      if (!message.includes('plan:')) return;
      const explained = JSON.parse(message.slice(message.indexOf('{'))) as { 'Query Text': string; Plan: PlanNode };
      const text = explained['Query Text'];
      sums.set(text, (sums.get(text) ?? 0) + rowsThrough(explained.Plan));
    };
    const database = world.get(Database);
    const transaction = database.transaction.bind(database);
    const spy = jest.spyOn(database, 'transaction').mockImplementation((body, size) =>
      transaction(async (tx) => {
        await tx.query(EXPLAIN);
        tx.on('notice', count);
        return body(tx).finally(() => tx.off('notice', count));
      }, size),
    );
    await work().finally(() => spy.mockRestore());
    return sums;
  }

  async function workOf(people: number, statistics: string): Promise<Record<string, Map<string, number>>> {
    await world.reset();
    await world.sql(statistics);
    const runner = world.get(ImportRunner);
    const send = (suffix: string) =>
      start('kind=clients', [
        providers(...many(PROVIDERS, 'p')),
        clientsCsv(
          many(people, 'c').map((one, at) =>
            clientLine(one, [`p-${(at % PROVIDERS) + 1}`, 'p-1'], `${one}${suffix}@example.org`),
          ),
        ),
      ]);
    const first = await send('');
    const applying = await counted(() => runner.prepareAll());
    const counting = await counted(() => runner.countAll());
    await send('-new');
    const changing = await counted(() => runner.prepareAll());
    await steer(first, 'cancel');
    const cancelling = await counted(async () => {
      while ((await show(first)).finishedAt === null) await runner.countAll();
    });
    return { applying, counting, changing, cancelling };
  }

  test.each([
    [
      'was never analysed',
      `TRUNCATE ${TABLES} CASCADE; DELETE FROM pg_statistic WHERE starelid = ANY ('{${TABLES}}'::regclass[])`,
    ],
    ['was analysed while it was empty', `VACUUM ANALYZE ${TABLES}`],
  ])('grows as its people do, in each statement, on a database that %s', async (_, statistics) => {
    const few = await workOf(FEW, statistics);
    const more = await workOf(FEW * MORE, statistics);
    const grown = Object.entries(more).flatMap(([name, statements]) =>
      [...statements].flatMap(([text, read]) => {
        const before = few[name]?.get(text) ?? 0;
        const isFair = read <= before * MAX_GROWTH + NOISE;
        return isFair ? [] : [`${name}: ${before} → ${read}: ${text.replace(/\s+/g, ' ').slice(0, 160)}`];
      }),
    );
    expect(grown).toEqual([]);
    expect(Object.values(more).every(({ size }) => size > 0)).toBe(true);
  });
});
