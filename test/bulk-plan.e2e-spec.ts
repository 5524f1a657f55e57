import { type Service, sumOfOutcomes } from '../harness/service.js';
import type { ImportResponse } from '../src/imports/report/import-view.js';
import {
  clientLine,
  clientsCsv,
  imported,
  importOf,
  many,
  planned,
  providerLine,
  providersCsv,
  rowsOf,
  surprises,
} from './support/bulk.js';
import { useSharedService } from './support/shared-service.js';

interface ProblemBody {
  type: string;
  detail: string;
  guards?: { name: string; count: number; of: number }[];
}

/** More people than any other test here creates. */
const MOST_CREATES = 60;

// A call whose answer a stalled machine makes late would be made twice, and counted so.
const PATIENT = { PLATFORM_TIMEOUT_SECONDS: '60' };
const shared = useSharedService({ env: { IMPORT_MAX_CREATES: `10%,${MOST_CREATES}`, ...PATIENT } });

const apply = (service: Service, id: string, override?: string[]) =>
  service.call<ImportResponse & ProblemBody>('POST', `/v1/imports/${id}/apply`, { body: override ? { override } : {} });

describe('a dry run', () => {
  test('says what will happen to each row, sends nothing, and apply does exactly that', async () => {
    const { mirror, service } = shared;
    await imported(service, 'kind=clients', [
      providersCsv(['p-1', 'p-2', 'p-3'].map((id) => providerLine(id))),
      clientsCsv([
        clientLine('c-1', ['p-1']),
        clientLine('c-2', ['p-1']),
        clientLine('c-3', ['p-2'], 'c-3@example.org'),
      ]),
    ]);
    const before = mirror.arrivals();

    const plan = await planned(service, 'kind=clients&dryRun=true', [
      providersCsv([
        providerLine('p-1'),
        `p-2,p-2@example.org,Pia,Renamed`,
        providerLine('p-4'),
        providerLine('p-5', 'P-4@example.org'),
        'p-6,no mail,Pia,Six',
      ]),
      clientsCsv([
        clientLine('c-1', ['p-1']),
        clientLine('c-2', ['p-2', 'p-4']),
        clientLine('c-4', ['p-1', 'p-4'], 'c-4@example.org'),
        clientLine('c-5', ['p-4']),
        clientLine('c-6', ['p-5']),
        clientLine('c-7', ['p-unknown']),
        clientLine('c-1', ['p-1']),
      ]),
    ]);
    expect(mirror.arrivals()).toBe(before);
    expect(plan.planned).toEqual({
      unchanged: 2,
      'attribute-change': 1,
      'create-or-link': 3,
      'needs-review': 2,
      'provider-change': 1,
      rejected: 3,
    });
    // p-4: 1 or 2; c-2: 1; c-4: 2 or 3; c-5: 1.
    expect(plan.calls).toEqual({ made: 0, remaining: { min: 5, max: 7 } });
    expect(plan.etaSeconds).toBeGreaterThan(0);
    expect(plan.counts).toMatchObject({ total: 12, unchanged: 2, rejected: 3, pending: 7 });
    const behind = await rowsOf(service, plan.id, 'planned=needs-review');
    expect(behind.map((row) => [row.file, row.line, row.externalId])).toEqual([
      ['providers.csv', 5, 'p-5'],
      ['clients.csv', 6, 'c-6'],
    ]);

    expect((await apply(service, plan.id)).status).toBe(202);
    const ended = await service.importEnded(plan.id);
    expect(ended.state).toBe('completed');
    expect(sumOfOutcomes(ended)).toBe(12);
    const rows = await rowsOf(service, plan.id);
    expect(surprises(rows)).toEqual([]);
    expect(ended.calls.made).toBe(mirror.arrivals() - before);
    expect(ended.calls.made).toBe(7);
    expect(rows.map(({ externalId, code }) => [externalId, code])).toEqual([
      ['p-1', null],
      ['p-2', 'not-pushable'],
      ['p-4', null],
      ['p-5', 'email-taken'],
      ['p-6', 'bad-email'],
      ['c-1', null],
      ['c-2', null],
      ['c-4', null],
      ['c-5', null],
      ['c-6', 'provider-not-mirrored'],
      ['c-7', 'unknown-provider'],
      ['c-1', 'duplicate-id'],
    ]);
    for (const row of rows.filter(({ code }) => code !== null)) expect([row.externalId, row.hint]).not.toContain(null);
    expect(Object.keys(rows[0] ?? {})).toEqual(
      expect.arrayContaining(['file', 'line', 'externalId', 'outcome', 'code', 'field', 'hint']),
    );
  });

  test('leaves alone whoever changed since; retry plans those rows anew', async () => {
    const { mirror, service } = shared;
    await imported(service, 'kind=providers', [providersCsv(many(3, 'p').map((id) => providerLine(id)))]);
    await imported(service, 'kind=clients', [clientsCsv(many(3, 'c').map((id) => clientLine(id, ['p-1'])))]);
    const plan = await planned(service, 'kind=clients&dryRun=true', [
      clientsCsv([...many(3, 'c').map((id) => clientLine(id, ['p-2'])), clientLine('c-4', ['p-1'])]),
    ]);
    await service.call('PUT', '/v1/clients/c-2/providers', { body: { providers: ['p-3'] }, wait: 60 });
    await service.call('PUT', '/v1/clients/c-4', {
      body: { firstName: 'Cleo', lastName: 'New', providers: ['p-3'] },
      wait: 60,
    });
    await apply(service, plan.id);
    await service.importEnded(plan.id);
    const outcomes = async () =>
      (await rowsOf(service, plan.id)).map(({ externalId, outcome, code }) => [externalId, outcome, code]);
    expect(await outcomes()).toEqual([
      ['c-1', 'updated', null],
      ['c-2', 'skipped', 'changed-since-plan'],
      ['c-3', 'updated', null],
      ['c-4', 'skipped', 'changed-since-plan'],
    ]);
    const listOf = (id: string) => mirror.usersOf(id)[0]?.providerUserIds;
    const idOf = (id: string) => mirror.usersOf(id)[0]?.userId;
    expect([listOf('c-1'), listOf('c-2')]).toEqual([[idOf('p-2')], [idOf('p-3')]]);

    const calls = mirror.arrivals();
    await service.call('POST', `/v1/imports/${plan.id}/retry`, { body: {} });
    await service.importEnded(plan.id);
    expect(await outcomes()).toEqual([
      ['c-1', 'updated', null],
      ['c-2', 'updated', null],
      ['c-3', 'updated', null],
      ['c-4', 'updated', null],
    ]);
    expect(listOf('c-2')).toEqual([idOf('p-2')]);
    expect(mirror.arrivals() - calls).toBe(2);
  });

  test('of the same file again plans no call, and sent for good makes none', async () => {
    const { mirror, service } = shared;
    const files = [
      providersCsv(many(5, 'p').map((id) => providerLine(id))),
      clientsCsv([...many(9, 'c').map((id) => clientLine(id, ['p-1', 'p-2'], `${id}@example.org`)), 'c-x,bad,A,B,p-1']),
    ];
    const first = await imported(service, 'kind=clients', files);
    expect(first.counts).toMatchObject({ total: 15, created: 14, rejected: 1 });
    const before = mirror.arrivals();
    const again = await imported(service, 'kind=clients', files);
    expect([again.state, again.counts.unchanged, again.counts.rejected]).toEqual(['completed', 14, 1]);
    expect([mirror.arrivals() - before, again.calls]).toEqual([0, { made: 0, remaining: { min: 0, max: 0 } }]);
  });
});

describe('a snapshot', () => {
  test('that holds half of the people deletes nobody without the override; with it, exactly those', async () => {
    const { mirror, service } = shared;
    const clients = many(20, 'c');
    await imported(service, 'kind=clients', [
      providersCsv(many(40, 'p').map((id) => providerLine(id))),
      clientsCsv(clients.map((id) => clientLine(id, ['p-1']))),
    ]);
    const half = clients.slice(0, 10);
    const plan = await planned(service, 'kind=clients&mode=snapshot', [
      clientsCsv(half.map((id) => clientLine(id, ['p-1']))),
    ]);
    expect([plan.planned, plan.counts.total, plan.deletes]).toEqual([
      { unchanged: 10, delete: 10 },
      10,
      { pending: 10 },
    ]);
    const before = mirror.arrivals();
    const refused = await apply(service, plan.id);
    expect([refused.status, refused.body.type]).toEqual([409, 'urn:notebridge:problem:threshold-exceeded']);
    expect(refused.body.guards).toMatchObject([{ name: 'deletes', count: 10, of: 20 }]);
    expect((await apply(service, plan.id, ['creates', 'providerRemovals'])).status).toBe(409);
    expect([(await importOf(service, plan.id)).state, mirror.arrivals()]).toEqual(['planned', before]);

    expect((await apply(service, plan.id, ['deletes'])).status).toBe(202);
    const ended = await service.importEnded(plan.id);
    expect([ended.counts.unchanged, ended.counts.deleted, sumOfOutcomes(ended)]).toEqual([10, 10, 10]);
    expect(mirror.arrivals('deleteUser')).toBe(10);
    for (const id of clients) expect([id, mirror.usersOf(id).length]).toEqual([id, half.includes(id) ? 1 : 0]);
    expect(mirror.simulator.state.users.list()).toHaveLength(50);

    const action = encodeURIComponent('POST /v1/imports/:id/apply');
    const audit = await service.call<{ items: object[] }>('GET', `/v1/audit?subject=${plan.id}&action=${action}`);
    expect(audit.body.items.slice(0, 2)).toMatchObject([
      { keyId: 'admin', subjects: { import: [plan.id] }, outcome: 'override deletes' },
      { keyId: 'admin', subjects: { import: [plan.id] }, outcome: 'threshold-exceeded' },
    ]);
  });

  test('changes provider lists before it deletes providers, and never deletes one that is still named', async () => {
    const { mirror, service } = shared;
    await imported(service, 'kind=clients', [
      providersCsv(many(4, 'p').map((id) => providerLine(id))),
      clientsCsv([...many(6, 'c').map((id) => clientLine(id, ['p-1', 'p-2'])), clientLine('c-own', ['p-4'])]),
    ]);
    const begun = mirror.arrivals();
    const plan = await planned(service, 'kind=clients&mode=snapshot', [
      providersCsv([providerLine('p-3')]),
      // The row of c-own is wrong, so that it keeps its list, and with it its provider.
      clientsCsv([...many(6, 'c').map((id) => clientLine(id, ['p-3'])), 'c-own,no mail,Cleo,Own,p-3']),
    ]);
    expect(plan.planned).toEqual({ unchanged: 1, 'provider-change': 6, rejected: 1, delete: 3 });
    expect((await rowsOf(service, plan.id, 'outcome=skipped')).map((row) => [row.externalId, row.code])).toEqual([
      ['p-4', 'provider-in-use'],
    ]);
    expect((await apply(service, plan.id)).body.guards).toMatchObject([{ name: 'providerRemovals', count: 6, of: 7 }]);
    await apply(service, plan.id, ['providerRemovals']);
    const ended = await service.importEnded(plan.id);
    expect([ended.counts.updated, ended.counts.deleted, ended.deletes]).toEqual([6, 2, { deleted: 2, skipped: 1 }]);
    const operations = mirror.simulator.state.arrivals
      .list()
      .slice(begun)
      .map(({ operation }) => operation);
    expect(operations).toEqual([...Array(6).fill('setClientProviders'), ...Array(2).fill('deleteUser')]);
    expect(mirror.usersOf('p-4')).toHaveLength(1);
  });

  test('never takes a person for missing whose row is wrong, nor for whom the row may stand', async () => {
    const { service } = shared;
    await imported(service, 'kind=providers', [providersCsv(many(30, 'p').map((id) => providerLine(id)))]);
    const named = many(28, 'p').map((id) => providerLine(id));
    const plan = await planned(service, 'kind=providers&mode=snapshot', [
      providersCsv([...named, 'p-29,no mail,Pia,P', 'p-30']),
    ]);
    expect((await rowsOf(service, plan.id, 'planned=delete')).map((row) => row.externalId)).not.toContain('p-29');
    const nameless = await planned(service, 'kind=providers&mode=snapshot', [
      providersCsv([...named, providerLine('p-29'), ',p-30@example.org,Pia,P']),
    ]);
    expect(nameless.planned.delete).toBe(1);
    const refused = await apply(service, nameless.id);
    expect([refused.status, refused.body.guards]).toMatchObject([409, [{ name: 'deletes', nameless: 1 }]]);
  });

  test('never deletes anybody whose id stands in any cell of a rejected row, and asks when a row does not fit', async () => {
    const { mirror, service } = shared;
    const lines = many(30, 'c').map((id) => clientLine(id, ['p-1']));
    await imported(service, 'kind=clients', [providersCsv([providerLine('p-1')]), clientsCsv(lines)]);
    const plan = await planned(service, 'kind=clients&mode=snapshot', [
      clientsCsv([
        ...lines.slice(0, 24),
        'c-0,c-25,,Cleo,c-25,p-1', // shifted by a name that was not quoted
        'c-1,c-26', // cut off
        'c-27,"Cleo,c-27,p-1', // a quote that is never closed
        'c-2,"x\nc-28,,Cleo,c-28",p-1', // a quote that swallows the next row
        'c-29,no mail,Cleo,c-29,p-1',
      ]),
    ]);
    expect((await rowsOf(service, plan.id, 'planned=delete')).map((row) => row.externalId)).toEqual(['c-30']);
    const refused = await apply(service, plan.id);
    expect([refused.status, refused.body.guards]).toMatchObject([409, [{ name: 'deletes', count: 1, nameless: 4 }]]);
    expect(mirror.arrivals('deleteUser')).toBe(0);
  });

  test('never deletes anybody whose row a quote in a column that is not read has swallowed', async () => {
    const { service } = shared;
    const lines = many(30, 'c').map((id) => clientLine(id, ['p-1']));
    await imported(service, 'kind=clients', [providersCsv([providerLine('p-1')]), clientsCsv(lines)]);
    const noted = lines.slice(0, 29).map((line) => `${line},`);
    noted.splice(5, 2, `${lines[5]},"said so`, `${lines[6]},and so"`);
    noted[27] += '"at\nthe end,c-29"';
    const content = ['externalId,email,firstName,lastName,providers,note', ...noted].join('\n');
    const plan = await planned(service, 'kind=clients&mode=snapshot', [{ ...clientsCsv([]), content }]);
    expect((await rowsOf(service, plan.id, 'planned=delete')).map((row) => row.externalId)).toEqual(['c-30']);
  });

  test('of clients alone says nothing of providers', async () => {
    const { service } = shared;
    await imported(service, 'kind=clients', [
      providersCsv(many(3, 'p').map((id) => providerLine(id))),
      clientsCsv([clientLine('c-1', ['p-1'])]),
    ]);
    const plan = await planned(service, 'kind=providers&mode=snapshot', [clientsCsv([clientLine('c-1', ['p-1'])])]);
    expect(plan.planned).toEqual({ unchanged: 1 });
  });
});

test('an import that would create more than the threshold waits for an override, also without dryRun', async () => {
  const { mirror, service } = shared;
  const people = many(MOST_CREATES + 1, 'p').map((id) => providerLine(id));
  const plan = await planned(service, 'kind=providers', [providersCsv(people)]);
  expect([(await apply(service, plan.id)).status, mirror.arrivals()]).toEqual([409, 0]);
  expect((await apply(service, plan.id, ['creates'])).status).toBe(202);
  expect((await service.importEnded(plan.id)).counts.created).toBe(people.length);
});
