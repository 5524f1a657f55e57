import pg from 'pg';
import { IMPORT_LOCK } from '../../src/imports/model/imports.repository.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const world = useWorld();
const { imported, prepared, planned, ended, steer, show, rows, outcomes, makeCalls } = importsIn(world);

test('a plan leaves out people taken back by a cancelled import, and ends', async () => {
  const stays = clientsCsv([clientLine('c-stays', ['p-1'])]);
  await imported('kind=clients', [providersCsv([providerLine('p-1')]), stays]);
  const { id } = await prepared('kind=clients', [clientsCsv(many(30, 'c').map((one) => clientLine(one, ['p-1'])))]);
  await makeCalls(10);
  await steer(id, 'pause');
  const plan = await planned('kind=clients&mode=snapshot', [stays]);
  expect(plan.planned).toMatchObject({ delete: 30 });
  await steer(id, 'cancel');
  await world.settle();
  expect((await show(id)).counts).toMatchObject({ created: 10, skipped: 20 });

  expect((await ended(plan.id, 'apply', ['deletes'])).deletes).toEqual({ deleted: 10, skipped: 20 });
  const skipped = await rows(plan.id, 'outcome=skipped');
  expect(new Set(skipped.map(({ code }) => code))).toEqual(new Set(['changed-since-plan']));
});

test('a retry waits for its turn among the imports', async () => {
  await imported('kind=clients', [providersCsv([providerLine('p-1')]), clientsCsv([clientLine('c-1', ['p-1'])])]);
  const renamed = providersCsv(['p-1,p-1@example.org,Pia,New']);
  const { id } = await planned('kind=providers&dryRun=true', [renamed]);
  const body = { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Other' };
  await world.call('PUT', '/v1/providers/p-1', { body });
  await ended(id, 'apply');

  const holder = new pg.Client({ connectionString: world.database.url });
  await holder.connect();
  await holder.query('SELECT pg_advisory_lock($1)', [IMPORT_LOCK]);
  const retried = steer(id, 'retry');
  await world.eventually('the retry waits', async () => {
    const waiting = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    return (await holder.query(waiting, [IMPORT_LOCK])).rowCount === 1;
  });
  await holder.end();
  expect((await retried).status).toBe(200);
  await world.settle();
  expect(await outcomes(id)).toEqual([['p-1', 'updated', 'not-pushable']]);
});
