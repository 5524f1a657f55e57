import type { ImportFile, Service } from '../harness/service.js';
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
import { query } from './support/query.js';
import type { Mirror } from './support/service.js';
import { useSharedService } from './support/shared-service.js';

const shared = useSharedService();

const post = async (service: Service, id: string, verb: 'apply' | 'retry') => {
  const { status } = await service.call('POST', `/v1/imports/${id}/${verb}`, { body: {} });
  expect([verb, Math.floor(status / 100)]).toEqual([verb, 2]);
  return importIs(service, id, 'completed');
};

const rejectedOf = async (service: Service, id: string): Promise<string[]> =>
  (await rejectedCsv(service, id)).split('\r\n');

const gone = (service: Service, path: string) => service.call('DELETE', `/v1/${path}`, { wait: 60 });

const wards = (lines: string[]): ImportFile => ({
  name: 'clients.csv',
  type: 'text/csv',
  content: ['Ward;MRN;Given Name;Family Name;E-Mail;Therapist', ...lines].join('\n'),
});

async function begin(): Promise<[Service, Mirror]> {
  const { mirror, service } = shared;
  await imported(service, 'kind=providers', [providersCsv(['p-1', 'p-2'].map((id) => providerLine(id)))]);
  return [service, mirror];
}

/** The imports of which cells are kept. */
async function withCells(mirror: Mirror): Promise<string[]> {
  const rows = await query<{ id: string }>(mirror.database, 'SELECT DISTINCT import_id AS id FROM import_cells');
  return rows.map(({ id }) => id);
}

test('a row that only a retry rejects has its original columns in the file of rejected rows, and comes back corrected', async () => {
  const [service, mirror] = await begin();
  const plan = await planned(service, 'kind=clients&dryRun=true', [
    wards(['A;c-1;Cleo;Roe;;p-1', '=1+1;c-2;Ann;Lee;;p-2']),
  ]);
  await gone(service, 'providers/p-2');
  expect((await post(service, plan.id, 'apply')).counts).toMatchObject({ created: 1, skipped: 1 });
  expect(await withCells(mirror)).toEqual([plan.id]);
  expect((await post(service, plan.id, 'retry')).counts).toMatchObject({ created: 1, rejected: 1 });
  const [header, line] = await rejectedOf(service, plan.id);
  expect(header).toBe('Ward,MRN,Given Name,Family Name,E-Mail,Therapist,line,code,hint,check');
  expect(line).toMatch(/^'=1\+1,c-2,Ann,Lee,,p-2,3,unknown-provider,/);

  const corrected = [header, line].join('\r\n').replace('p-2', 'p-1');
  const again = await imported(service, 'kind=clients', [{ ...wards([]), content: corrected }]);
  expect(again.counts).toMatchObject({ total: 1, created: 1 });
  expect(await withCells(mirror)).toEqual([plan.id]);
});

test('so has one that a first retry takes up and leaves out, and only a second one rejects', async () => {
  const { mirror, service } = shared;
  mirror.trouble({ operation: 'createClient', kind: 'status', status: 400 });
  const { id } = await imported(service, 'kind=clients', [
    providersCsv([providerLine('p-1')]),
    clientsCsv([clientLine('c-1', ['p-1'])]),
  ]);
  expect((await rowsOf(service, id, 'outcome=failed')).map(({ externalId }) => externalId)).toEqual(['c-1']);
  await gone(service, 'clients/c-1');
  await gone(service, 'providers/p-1');
  expect((await post(service, id, 'retry')).counts).toMatchObject({ skipped: 1 });
  expect((await post(service, id, 'retry')).counts).toMatchObject({ rejected: 1 });
  expect((await rejectedOf(service, id))[1]).toMatch(/^c-1,,Cleo,c-1,p-1,2,unknown-provider,/);
});

test('no other row is rejected by a retry: neither a provider’s, nor one without a list, nor one for its double', async () => {
  const [service] = await begin();
  const plan = await planned(service, 'kind=clients&dryRun=true&defaultProvider=p-1', [
    providersCsv(['p-2,p-2@example.org,Pia,New', providerLine('p-2')]),
    clientsCsv([clientLine('c-1', []), clientLine('c-1', ['p-1'])]),
  ]);
  const person = { firstName: 'Any', lastName: 'Body' };
  await service.call('PUT', '/v1/providers/p-2', { body: { ...person, email: 'p-2@example.org' }, wait: 60 });
  await service.call('PUT', '/v1/clients/c-1', { body: { ...person, providers: ['p-2'] }, wait: 60 });
  const outcomes = async () => (await rowsOf(service, plan.id)).map(({ outcome, code }) => [outcome, code]);
  const doubles = ['rejected', 'duplicate-id'];
  const skipped = ['skipped', 'changed-since-plan'];
  await post(service, plan.id, 'apply');
  expect(await outcomes()).toEqual([skipped, doubles, skipped, doubles]);
  await post(service, plan.id, 'retry');
  expect(await outcomes()).toEqual([['updated', 'not-pushable'], doubles, ['updated', null], doubles]);
});
