import pg from 'pg';
import { until } from '../harness/until.js';
import { IMPORT_LOCK } from '../src/imports/model/imports.repository.js';
import {
  clientLine,
  clientsCsv,
  imported,
  importIs,
  many,
  planned,
  providerLine,
  providersCsv,
  rowsOf,
} from './support/bulk.js';
import { callRoom } from './support/call-room.js';
import { query } from './support/databases.js';
import { openDatabase } from './support/open-database.js';
import { dropOld } from './support/retention.js';
import { useSharedService } from './support/shared-service.js';

// A create that a slow machine answers late is not one without an answer.
const shared = useSharedService({ calls: 3_000, env: { PLATFORM_TIMEOUT_SECONDS: '60' } });

test('a person whom a plan deletes and a cancelled import took back is left out, and the import ends', async () => {
  const { mirror, service } = shared;
  const stays = clientLine('c-stays', ['p-1']);
  await imported(service, 'kind=clients', [providersCsv([providerLine('p-1')]), clientsCsv([stays])]);
  const news = many(30, 'c').map((id) => clientLine(id, ['p-1']));
  const room = callRoom(mirror);
  await room.leave(10); // each takes one call
  const { id } = await service.startImport('kind=clients', [clientsCsv(news)]);
  await room.used();
  await service.call('POST', `/v1/imports/${id}/pause`, { body: {} });
  const plan = await planned(service, 'kind=clients&mode=snapshot', [clientsCsv([stays])]);
  expect(plan.planned).toMatchObject({ delete: 30 });
  await service.call('POST', `/v1/imports/${id}/cancel`, { body: {} });
  const { created, skipped } = (await service.importEnded(id)).counts;
  expect([created, skipped]).toEqual([10, 20]);
  await room.free();

  await service.call('POST', `/v1/imports/${plan.id}/apply`, { body: { override: ['deletes'] } });
  const ended = await importIs(service, plan.id, 'completed');
  expect(ended.deletes).toEqual({ deleted: 10, skipped: 20 });
  const rows = await rowsOf(service, plan.id, 'outcome=skipped');
  expect(new Set(rows.map(({ code }) => code))).toEqual(new Set(['changed-since-plan']));
});

test('retry waits for its turn among the imports: nothing is planned or applied beside another', async () => {
  const { mirror, service } = shared;
  const files = [providersCsv([providerLine('p-1')]), clientsCsv([clientLine('c-1', ['p-1'])])];
  await imported(service, 'kind=clients', files);
  const plan = await planned(service, 'kind=providers&dryRun=true', [providersCsv(['p-1,p-1@example.org,Pia,New'])]);
  const body = { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Other' };
  await service.call('PUT', '/v1/providers/p-1', { body });
  await service.call('POST', `/v1/imports/${plan.id}/apply`, { body: {} });
  await importIs(service, plan.id, 'completed');

  const holder = new pg.Client({ connectionString: mirror.database.url });
  await holder.connect();
  await holder.query('SELECT pg_advisory_lock($1)', [IMPORT_LOCK]);
  const retried = service.call('POST', `/v1/imports/${plan.id}/retry`, { body: {} });
  await until('the retry waits', async () => {
    const { rowCount } = await holder.query(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      [IMPORT_LOCK],
    );
    return rowCount === 1;
  });
  await holder.end();
  expect((await retried).status).toBe(200);
  await importIs(service, plan.id, 'completed');
  const rows = await rowsOf(service, plan.id);
  expect(rows.map(({ outcome, code }) => [outcome, code])).toEqual([['updated', 'not-pushable']]);
});

test('what is no longer kept of an old import is not retried', async () => {
  const { mirror, service } = shared;
  const files = [providersCsv([providerLine('p-1'), providerLine('p-2', 'p-1@example.org')])];
  await imported(service, 'kind=providers', files);
  const { id } = await imported(service, 'kind=providers', files);
  await query(mirror.database, `UPDATE imports SET finished_at = now() - interval '100 days' WHERE id = $1`, [id]);
  const database = openDatabase(mirror.database);
  const dropped = await dropOld(database);
  await database.onApplicationShutdown();
  expect(dropped).toMatchObject({ importRows: 1 });
  const retried = await service.call('POST', `/v1/imports/${id}/retry`, { body: {} });
  expect([retried.status, retried.body]).toMatchObject([200, { state: 'completed', counts: { needsReview: 1 } }]);
});
