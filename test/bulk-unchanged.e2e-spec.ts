import pg from 'pg';
import { IMPORT_LOCK } from '../src/imports/model/imports.repository.js';
import {
  clientLine,
  clientsCsv,
  imported,
  importIs,
  planned,
  providerLine,
  providersCsv,
  rejectedCsv,
  rowsOf,
} from './support/bulk.js';
import { query } from './support/databases.js';
import { useSharedService } from './support/shared-service.js';

// A create that a slow machine answers late is not one without an answer.
const shared = useSharedService({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });

async function begin() {
  const { mirror, service } = shared;
  const clients = [clientLine('c-1', ['p-1', 'p-2'], 'c-1@mail.example'), clientLine('c-2', ['p-2'])];
  const files = [providersCsv([providerLine('p-1'), providerLine('p-2')]), clientsCsv(clients)];
  await imported(service, 'kind=clients', files);
  return { mirror, service, files };
}

test('rows that say nothing new have their outcome when they are read, and are not kept', async () => {
  const { mirror, service, files } = await begin();
  const before = mirror.arrivals();
  const again = await imported(service, 'kind=clients', files);
  expect(again.counts).toMatchObject({ total: 4, unchanged: 4, pending: 0 });
  expect(again.planned).toEqual({ unchanged: 4 });
  expect(mirror.arrivals()).toBe(before);
  const kept = await query(
    mirror.database,
    'SELECT 1 FROM import_raw_rows UNION ALL SELECT 1 FROM import_rows WHERE profile IS NOT NULL AND import_id = $1',
    [again.id],
  );
  expect(kept).toEqual([]);
});

test('what was said of people, and wanted of them before, is kept with a row only until it is done', async () => {
  const { mirror, service } = await begin();
  await imported(service, 'kind=providers', [providersCsv(['p-1,p-1@example.org,Pia,Other', providerLine('p-2')])]);
  const files = [providersCsv([providerLine('p-1'), providerLine('p-2')]), clientsCsv([clientLine('c-1', ['p-1'])])];
  const { id } = await planned(service, 'kind=clients&mode=snapshot', files);
  await service.call('POST', `/v1/imports/${id}/apply`);
  await importIs(service, id, 'completed');
  const rows = await query(mirror.database, 'SELECT DISTINCT outcome FROM import_rows ORDER BY outcome');
  expect(rows.map(({ outcome }) => outcome).sort()).toEqual(['created', 'deleted', 'unchanged', 'updated']);
  expect(
    await query(mirror.database, 'SELECT outcome FROM import_rows WHERE profile IS NOT NULL OR was IS NOT NULL'),
  ).toEqual([]);
});

test('a list in another order, a default provider or a provider less is a change', async () => {
  const { service } = await begin();
  const { id } = await imported(service, 'kind=clients&defaultProvider=p-2', [
    clientsCsv([clientLine('c-1', ['p-2', 'p-1'], 'c-1@mail.example'), clientLine('c-2', [])]),
  ]);
  const rows = await rowsOf(service, id);
  expect(rows.map(({ externalId, outcome }) => [externalId, outcome])).toEqual([
    ['c-1', 'updated'],
    ['c-2', 'unchanged'],
  ]);
});

test('whoever changes between reading and planning is compared again', async () => {
  const { mirror, service, files } = await begin();
  const holder = new pg.Client({ connectionString: mirror.database.url });
  await holder.connect();
  await holder.query('SELECT pg_advisory_lock($1)', [IMPORT_LOCK]);
  const { id } = await service.startImport('kind=clients', files);
  const body = { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Renamed' };
  await service.call('PUT', '/v1/providers/p-1', { body });
  await service.call('PUT', '/v1/clients/c-2/providers', { body: { providers: ['p-1'] }, wait: 60 });
  await holder.end();
  await importIs(service, id, 'completed');
  const rows = await rowsOf(service, id);
  expect(rows.map(({ externalId, planned, outcome }) => [externalId, planned, outcome])).toEqual([
    ['p-1', 'attribute-change', 'updated'],
    ['p-2', 'unchanged', 'unchanged'],
    ['c-1', 'unchanged', 'unchanged'],
    ['c-2', 'provider-change', 'updated'],
  ]);
  const { body: person } = await service.call<{ lastName: string; email: string }>('GET', '/v1/providers/p-1');
  expect(person).toMatchObject({ lastName: 'p-1', email: 'p-1@example.org' });
});

test('of two rows with one id the first stays, also when only the second says nothing new', async () => {
  const { service } = await begin();
  const { id } = await imported(service, 'kind=providers', [
    providersCsv(['p-1,p-1@example.org,Pia,Other', providerLine('p-1'), providerLine('p-2'), providerLine('p-2')]),
  ]);
  const rows = await rowsOf(service, id);
  expect(rows.map(({ externalId, outcome, code }) => [externalId, outcome, code])).toEqual([
    ['p-1', 'updated', 'not-pushable'],
    ['p-1', 'rejected', 'duplicate-id'],
    ['p-2', 'unchanged', null],
    ['p-2', 'rejected', 'duplicate-id'],
  ]);
  const text = await rejectedCsv(service, id);
  expect(text).toContain('p-1,p-1@example.org,Pia,p-1,3,duplicate-id,');
  expect(text).toContain('p-2,p-2@example.org,Pia,p-2,5,duplicate-id,');
});
