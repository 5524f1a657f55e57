import { randomUUID } from 'node:crypto';
import type { Database } from '../src/database/database.js';
import type { ImportsRepository } from '../src/imports/model/imports.repository.js';
import { importIs, rejectedCsv, rowsOf } from './support/bulk.js';
import { importRepositories } from './support/import-repositories.js';
import { openDatabase } from './support/open-database.js';
import { useMirrors } from './support/service.js';

const newMirror = useMirrors();

const FAULT = { code: 'interrupted', detail: 'The upload broke off.' };

describe('an import fails once, and only while it is where the fault found it', () => {
  let parts: Awaited<ReturnType<typeof importRepositories>>;
  let database: Database;
  let imports: ImportsRepository;

  beforeAll(async () => {
    parts = await importRepositories();
    ({ database, imports } = parts);
  });

  afterAll(async () => {
    await parts.close();
  });

  async function failed(fail: 'reading' | 'plan', state: string, staged: boolean, applyWanted: boolean) {
    const id = randomUUID();
    await database.pool.query(
      `INSERT INTO imports (id, kind, mode, dry_run, state, created_by, staged_at, apply_wanted)
       VALUES ($1, 'clients', 'upsert', false, $2, 'admin', CASE WHEN $3 THEN now() END, $4)`,
      [id, state, staged, applyWanted],
    );
    for (let time = 0; time < 2; time++)
      await database.transaction(async (tx) => void (await imports.fail(tx, id, fail, FAULT)));
    const after = await imports.find(id);
    const told = await database.pool.query('SELECT 1 FROM feed_events WHERE subject = $1', [`imports/${id}`]);
    return [after?.state, after?.errorCode, told.rowCount];
  }

  test.each([
    ['reading', 'staging', false, false, 'failed'],
    ['reading', 'staging', true, false, 'staging'],
    ['reading', 'running', true, false, 'running'],
    ['plan', 'staging', true, false, 'failed'],
    ['plan', 'planned', true, true, 'failed'],
    ['plan', 'planned', true, false, 'planned'],
    ['plan', 'running', true, false, 'running'],
  ] as const)(
    'failed %s of one that is %s (read %s, to be applied %s) leaves it %s',
    async (fail, state, staged, wanted, is) => {
      const outcome = is === 'failed' ? ['failed', FAULT.code, 1] : [is, null, 0];
      expect(await failed(fail, state, staged, wanted)).toEqual(outcome);
    },
  );
});

test('of an import that could not be planned only the rejected rows are kept, and those behind it go on', async () => {
  const mirror = await newMirror();
  const service = await mirror.start();
  const database = openDatabase(mirror.database);
  const count = async (table: string) => (await database.pool.query(`SELECT 1 FROM ${table}`)).rowCount;
  // A fault of the data that comes again each time, in the middle of the plan.
  await database.pool.query(`
    CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'out of range' USING ERRCODE = '22003'; END $$;
    CREATE TRIGGER fault BEFORE UPDATE ON import_rows FOR EACH ROW WHEN (NEW.external_id = 'c-bad') EXECUTE FUNCTION fault()`);
  const person = (resourceType: string, id: string) => ({
    resourceType,
    id,
    name: [{ given: ['A'], family: id }],
    telecom: [{ system: 'email', value: `${id}@example.org` }],
  });
  const fhir = (name: string, ...resources: object[]) => ({
    name: `${name}.ndjson`,
    type: 'application/fhir+ndjson',
    content: resources.map((one) => JSON.stringify(one)).join('\n'),
  });
  const bad = { ...person('Patient', 'c-bad'), generalPractitioner: [{ reference: 'Practitioner/p-1' }] };
  const { id } = await service.startImport('kind=fhir', [
    fhir('a', person('Practitioner', 'p-1'), bad, { resourceType: 'Patient', id: 'c-nameless' }),
  ]);
  const failed = await importIs(service, id, 'failed');
  expect([failed.error?.code, await count('import_references')]).toEqual(['plan-failed', 0]);
  expect(await rowsOf(service, id, 'outcome=rejected')).toMatchObject([{ externalId: 'c-nameless' }]);
  expect(await rejectedCsv(service, id)).toContain('client,c-nameless,');
  await service
    .startImport('kind=fhir', [fhir('b', person('Practitioner', 'p-1'))])
    .then((next) => importIs(service, next.id, 'completed'));
  expect([await count('import_references'), await count('import_raw_rows')]).toEqual([0, 1]);
  await database.onApplicationShutdown();
});
