import pg from 'pg';
import { until } from '../harness/until.js';
import { Database } from '../src/database/database.js';
import { ORDER_LOCK } from '../src/imports/order-lock.js';
import { RetentionRepository } from '../src/operations/retention.repository.js';
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
import { useMirrors } from './support/service.js';

const newMirror = useMirrors();

test('a person whom a plan deletes and a cancelled import took back is left out, and the import ends', async () => {
  const mirror = await newMirror({ calls: 1_200, platform: { latencyMs: [20, 120] } });
  const service = await mirror.start();
  const stays = clientLine('c-stays', ['p-1']);
  await imported(service, 'kind=clients', [providersCsv([providerLine('p-1')]), clientsCsv([stays])]);
  const news = many(30, 'c').map((id) => clientLine(id, ['p-1']));
  const { id } = await service.startImport('kind=clients', [clientsCsv(news)]);
  await importIs(service, id, 'running');
  await service.call('POST', `/v1/imports/${id}/pause`, { body: {} });
  const plan = await planned(service, 'kind=clients&mode=snapshot', [clientsCsv([stays])]);
  expect(plan.planned).toMatchObject({ delete: 30 });
  await service.call('POST', `/v1/imports/${id}/cancel`, { body: {} });
  const { skipped } = (await service.importEnded(id)).counts;
  expect(skipped).toBeGreaterThan(0);

  await service.call('POST', `/v1/imports/${plan.id}/apply`, { body: { override: ['deletes'] } });
  const ended = await importIs(service, plan.id, 'completed');
  expect({ deleted: 0, ...ended.deletes }).toEqual({ deleted: 30 - skipped, skipped });
  const rows = await rowsOf(service, plan.id, 'outcome=skipped');
  expect(new Set(rows.map(({ code }) => code))).toEqual(new Set(['changed-since-plan']));
});

test('retry waits for its turn among the imports: nothing is planned or applied beside another', async () => {
  const mirror = await newMirror();
  const service = await mirror.start();
  const files = [providersCsv([providerLine('p-1')]), clientsCsv([clientLine('c-1', ['p-1'])])];
  await imported(service, 'kind=clients', files);
  const plan = await planned(service, 'kind=providers&dryRun=true', [providersCsv(['p-1,p-1@example.org,Pia,New'])]);
  const body = { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Other' };
  await service.call('PUT', '/v1/providers/p-1', { body });
  await service.call('POST', `/v1/imports/${plan.id}/apply`, { body: {} });
  await importIs(service, plan.id, 'completed');

  const holder = new pg.Client({ connectionString: mirror.database.url });
  await holder.connect();
  await holder.query('SELECT pg_advisory_lock($1)', [ORDER_LOCK]);
  const retried = service.call('POST', `/v1/imports/${plan.id}/retry`, { body: {} });
  await until('the retry waits', async () => {
    const { rowCount } = await holder.query(
      `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = $1 AND NOT granted`,
      [ORDER_LOCK],
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
  const mirror = await newMirror();
  const service = await mirror.start();
  const files = [providersCsv([providerLine('p-1'), providerLine('p-2', 'p-1@example.org')])];
  await imported(service, 'kind=providers', files);
  const { id } = await imported(service, 'kind=providers', files);
  const database = new Database(mirror.database.url);
  await database.pool.query(`UPDATE imports SET finished_at = now() - interval '100 days' WHERE id = $1`, [id]);
  const dropped = await new RetentionRepository(database).dropBefore(new Date(Date.now() - 90 * 86_400_000));
  await database.onApplicationShutdown();
  expect(dropped).toMatchObject({ importRows: 1 });
  const retried = await service.call('POST', `/v1/imports/${id}/retry`, { body: {} });
  expect([retried.status, retried.body]).toMatchObject([200, { state: 'completed', counts: { needsReview: 1 } }]);
});
