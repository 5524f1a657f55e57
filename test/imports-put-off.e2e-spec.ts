import { ImportsRepository } from '../src/imports/model/imports.repository.js';
import { ImportRunner, MOST_ATTEMPTS } from '../src/imports/run/import-runner.service.js';
import { PeopleService } from '../src/people/api/people.service.js';
import { providerLine, providersCsv } from './support/bulk.js';
import { freshDatabase, query, type TestDatabase } from './support/databases.js';
import { type ImportsApp, startImports } from './support/imports-app.js';

let home: TestDatabase;
let app: ImportsApp;

beforeEach(async () => {
  home = await freshDatabase();
  app = await startImports(home.url);
});

afterEach(async () => {
  await app.close();
  await home.drop();
});

const health = () => app.app.get(ImportRunner).health();
const stage = (...ids: string[]) => app.stage({ kind: 'providers' }, [providersCsv(ids.map((id) => providerLine(id)))]);
const state = async (id: string) => (await app.imports.show(id)).state;
const sql = (text: string) => query(home, text);

/** Has the database end the statement, as by its time limit, that plans or applies a row. @param when a condition on it */
async function endStatement(when: string): Promise<void> {
  await sql(`
    CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'late' USING ERRCODE = '57014'; END $$;
    CREATE TRIGGER late BEFORE UPDATE ON import_rows FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION late()`);
}

/** Time passes until what was put off is attempted again; the column's milliseconds would round now up. */
const later = () =>
  sql(`UPDATE imports SET attempt_at = now() - interval '1 second', alive_at = now() - interval '1 hour'`);

test('an import that can not be planned lets others pass, is told by health, and goes on when the trouble is over', async () => {
  await endStatement(`NEW.external_id = 'p-bad'`);
  const [bad, good] = [await stage('p-bad'), await stage('p-2')];
  await app.steps.prepareAll();
  expect([await state(bad), await state(good)]).toEqual(['staging', 'running']);
  expect(await health()).toMatchObject({ status: 'degraded', facts: { putOff: 1 } });
  await sql('DROP TRIGGER late ON import_rows');
  await app.steps.prepareAll();
  expect(await state(bad)).toBe('staging');
  await later();
  await app.steps.prepareAll();
  expect(await state(bad)).toBe('running');
  expect(await health()).toEqual({ status: 'ok' });
});

test('what somebody said while an import could not be planned stands: those rows are left for a retry', async () => {
  await endStatement(`NEW.external_id = 'p-1'`);
  const id = await stage('p-1', 'p-2');
  await app.steps.prepareAll();
  const profile = { email: 'p-1@example.org', firstName: 'Ada', lastName: 'Newer' };
  await app.app.get(PeopleService).put({ kind: 'provider', externalId: 'p-1' }, profile);
  await sql('DROP TRIGGER late ON import_rows');
  await later();
  await app.steps.prepareAll();
  const shown = await app.app.get(PeopleService).show({ kind: 'provider', externalId: 'p-1' });
  expect(shown.lastName).toBe('Newer');
  expect((await app.imports.show(id)).counts).toMatchObject({ skipped: 1, pending: 1 });
});

test('an import that can not be planned is cancelled while it waits', async () => {
  await endStatement(`NEW.external_id = 'p-1' AND NEW.planned IS NOT NULL`);
  const id = await stage('p-1');
  await app.steps.prepareAll();
  await app.imports.cancel(id);
  await app.steps.countAll();
  expect(await state(id)).toBe('cancelled');
  expect((await app.imports.show(id)).counts).toMatchObject({ pending: 0, skipped: 1 });
  expect(await health()).toEqual({ status: 'ok' });
});

test('attempts are bounded: one that never comes to a plan fails, and nothing of it is wanted', async () => {
  await endStatement(`NEW.external_id = 'p-1'`);
  const id = await stage('p-1');
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    expect([attempt, await state(id)]).toEqual([attempt, 'staging']);
    await app.steps.prepareAll();
    await later();
  }
  const view = await app.imports.show(id);
  expect([view.state, view.error?.code]).toEqual(['failed', 'plan-failed']);
  expect(await sql('SELECT 1 FROM people')).toEqual([]);
});

test('attempts to apply are bounded, too: what was wanted of it is taken back', async () => {
  await endStatement('NEW.applied AND NOT OLD.applied AND NEW.row_no = 1');
  // So many that the first batch does not hold the row that fails.
  const people = Array.from({ length: 1_500 }, (_, at) => `p-${at}`);
  const id = await app.stage({ kind: 'providers', dryRun: true }, [
    providersCsv(people.map((one) => providerLine(one))),
  ]);
  await app.steps.prepareAll();
  await app.imports.apply(id, ['creates']);
  for (let attempt = 0; attempt <= MOST_ATTEMPTS; attempt++) {
    await app.steps.prepareAll();
    await later();
  }
  const view = await app.imports.show(id);
  expect([view.state, view.error?.code]).toEqual(['failed', 'apply-failed']);
  await app.steps.countAll();
  expect(await sql('SELECT 1 FROM people')).toEqual([]);
  expect((await app.imports.show(id)).counts).toMatchObject({ pending: 0, skipped: people.length });
});

test('an attempt that ends its process counts, too', async () => {
  const id = await stage('p-1');
  const imports = app.app.get(ImportsRepository);
  for (const attempts of [1, 2]) {
    const begun = await app.database.transaction((tx) => imports.beginNext(tx));
    expect([begun?.id, begun?.attempts]).toEqual([id, attempts]);
  }
});
