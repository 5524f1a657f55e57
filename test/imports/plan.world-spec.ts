import { sumOfOutcomes } from '../../harness/service.js';
import { StagingRepository } from '../../src/imports/upload/staging.repository.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv, surprises } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const world = useWorld();
const { start, imported, mirrored, planned, ended, steer, show, rows, outcomes, rejected } = importsIn(world);

const providers = (...ids: string[]) => providersCsv(ids.map((id) => providerLine(id)));
const clients = (ids: string[], list: string[]) => clientsCsv(ids.map((id) => clientLine(id, list)));
const person = (kind: string, id: string) => world.call('GET', `/v1/${kind}/${id}`);
const put = (path: string, body: object) => world.call('PUT', `/v1/${path}`, { body, wait: 60 });

describe('a dry run', () => {
  test('says what will happen to each row and sends nothing; apply does exactly that', async () => {
    await imported('kind=clients', [
      providers('p-1', 'p-2'),
      clientsCsv([
        clientLine('c-1', ['p-1']),
        clientLine('c-2', ['p-1']),
        clientLine('c-3', ['p-2'], 'c-3@example.org'),
      ]),
    ]);
    const before = world.platform.arrivals();
    const plan = await planned('kind=clients&dryRun=true', [
      providersCsv([
        providerLine('p-1'),
        'p-2,p-2@example.org,Pia,Renamed',
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
    await world.settle();
    expect(world.platform.arrivals()).toBe(before);
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
    const behind = await rows(plan.id, 'planned=needs-review');
    expect(behind.map((row) => [row.file, row.line, row.externalId])).toEqual([
      ['providers.csv', 5, 'p-5'],
      ['clients.csv', 6, 'c-6'],
    ]);

    const view = await ended(plan.id, 'apply');
    expect([sumOfOutcomes(view), view.calls.made, world.platform.arrivals() - before]).toEqual([12, 7, 7]);
    const come = await rows(plan.id);
    expect(surprises(come)).toEqual([]);
    expect(come.map(({ externalId, code }) => [externalId, code])).toEqual([
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
    for (const row of come.filter(({ code }) => code !== null)) expect([row.externalId, row.hint]).not.toContain(null);
  });

  test('skips people who changed since the plan; retry plans their rows again', async () => {
    await imported('kind=clients', [providers('p-1', 'p-2', 'p-3'), clients(['c-1', 'c-2'], ['p-1'])]);
    const plan = await planned('kind=clients&dryRun=true', [
      clientsCsv([...['c-1', 'c-2'].map((id) => clientLine(id, ['p-2'])), clientLine('c-4', ['p-1'])]),
    ]);
    await put('clients/c-2/providers', { providers: ['p-3'] });
    await put('clients/c-4', { firstName: 'Cleo', lastName: 'New', providers: ['p-3'] });
    await ended(plan.id, 'apply');
    expect(await outcomes(plan.id)).toEqual([
      ['c-1', 'updated', null],
      ['c-2', 'skipped', 'changed-since-plan'],
      ['c-4', 'skipped', 'changed-since-plan'],
    ]);
    const lists = () => ['c-1', 'c-2'].map((id) => world.platform.usersOf(id)[0]?.providerUserIds);
    const [p2, p3] = ['p-2', 'p-3'].map((id) => world.platform.usersOf(id)[0]?.userId);
    expect(lists()).toEqual([[p2], [p3]]);

    const before = world.platform.arrivals();
    expect((await ended(plan.id, 'retry')).counts).toMatchObject({ updated: 3 });
    expect([lists(), world.platform.arrivals() - before]).toEqual([[[p2], [p2]], 2]);
  });

  test('leaves people as they are when it is cancelled', async () => {
    await imported('kind=clients', [providers('p-1'), clients(['c-1'], ['p-1'])]);
    const before = world.platform.arrivals();
    const plan = await planned('kind=clients&dryRun=true', [providers('p-2'), clients(['c-1'], ['p-2'])]);
    await steer(plan.id, 'cancel');
    await world.settle();
    const view = await show(plan.id);
    expect([view.state, view.counts.skipped, view.counts.total]).toEqual(['cancelled', 2, 2]);
    expect((await person('providers', 'p-2')).status).toBe(404);
    expect((await person('clients', 'c-1')).body).toMatchObject({ providers: ['p-1'], sync: { state: 'synced' } });
    expect(world.platform.arrivals()).toBe(before);
  });
});

describe('rows that say nothing new', () => {
  const files = [
    providers('p-1', 'p-2'),
    clientsCsv([clientLine('c-1', ['p-1', 'p-2'], 'c-1@mail.example'), clientLine('c-2', ['p-2']), 'c-x,bad,A,B,p-1']),
  ];

  test('have their outcome when they are read, make no call and are not kept', async () => {
    expect((await imported('kind=clients', files)).counts).toMatchObject({ total: 5, created: 4, rejected: 1 });
    const before = world.platform.arrivals();
    const again = await imported('kind=clients', files);
    expect([again.counts.unchanged, again.counts.rejected, again.calls]).toEqual([
      4,
      1,
      { made: 0, remaining: { min: 0, max: 0 } },
    ]);
    expect(world.platform.arrivals()).toBe(before);
    expect(await world.sql('SELECT 1 FROM import_rows WHERE profile IS NOT NULL')).toEqual([]);
  });

  test('are compared again when their person changes before the plan', async () => {
    await mirrored('kind=clients', files);
    const id = await start('kind=clients', files);
    await world.call('PUT', '/v1/providers/p-1', {
      body: { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Renamed' },
    });
    await world.call('PUT', '/v1/clients/c-2/providers', { body: { providers: ['p-1'] } });
    await world.settle();
    expect((await rows(id)).map((row) => [row.externalId, row.planned])).toEqual([
      ['p-1', 'attribute-change'],
      ['p-2', 'unchanged'],
      ['c-1', 'unchanged'],
      ['c-2', 'provider-change'],
      ['c-x', 'rejected'],
    ]);
    expect((await person('providers', 'p-1')).body).toMatchObject({ lastName: 'p-1', email: 'p-1@example.org' });
  });

  test('do not include a list in another order; a default provider fills an empty cell', async () => {
    await mirrored('kind=clients', files);
    const { planned: counts } = await planned('kind=clients&defaultProvider=p-2&dryRun=true', [
      clientsCsv([clientLine('c-1', ['p-2', 'p-1'], 'c-1@mail.example'), clientLine('c-2', [])]),
    ]);
    expect(counts).toEqual({ 'provider-change': 1, unchanged: 1 });
  });

  test('do not win over an earlier row with their id: the later row is rejected', async () => {
    await imported('kind=clients', files);
    const { id } = await imported('kind=providers', [
      providersCsv(['p-1,p-1@example.org,Pia,Other', providerLine('p-1'), providerLine('p-2'), providerLine('p-2')]),
    ]);
    expect(await outcomes(id)).toEqual([
      ['p-1', 'updated', 'not-pushable'],
      ['p-1', 'rejected', 'duplicate-id'],
      ['p-2', 'unchanged', null],
      ['p-2', 'rejected', 'duplicate-id'],
    ]);
    expect((await rejected(id)).map((line) => line.split(',').slice(0, 6).join())).toMatchObject([
      expect.any(String),
      'p-1,p-1@example.org,Pia,p-1,3,duplicate-id',
      'p-2,p-2@example.org,Pia,p-2,5,duplicate-id',
    ]);
  });
});

describe('a snapshot', () => {
  test('deletes nobody above the threshold without its override, and exactly the missing with it', async () => {
    const ids = many(12, 'c');
    await imported('kind=clients', [providers('p-1', 'p-2'), clients(ids, ['p-1'])]);
    const plan = await planned('kind=clients&mode=snapshot', [clients(ids.slice(0, 6), ['p-1'])]);
    expect([plan.planned, plan.counts.total, plan.deletes]).toEqual([{ unchanged: 6, delete: 6 }, 6, { pending: 6 }]);
    const refused = await steer(plan.id, 'apply');
    expect([refused.status, refused.body.type]).toEqual([409, 'urn:notebridge:problem:threshold-exceeded']);
    expect(refused.body.guards).toMatchObject([{ name: 'deletes', count: 6, of: 12 }]);
    expect((await steer(plan.id, 'apply', ['providerRemovals'])).status).toBe(409);
    await world.settle();
    expect([(await show(plan.id)).state, world.platform.arrivals('deleteUser')]).toEqual(['planned', 0]);

    const { counts } = await ended(plan.id, 'apply', ['deletes']);
    expect([counts.unchanged, counts.deleted, sumOfOutcomes({ counts })]).toEqual([6, 6, 6]);
    expect(ids.filter((id) => world.platform.usersOf(id).length > 0)).toEqual(ids.slice(0, 6));
    expect(world.platform.simulator.state.users.list()).toHaveLength(2 + 6);
    // Neither the people nor their earlier desired state stay with finished rows.
    expect(await world.sql('SELECT 1 FROM import_rows WHERE profile IS NOT NULL OR was IS NOT NULL')).toEqual([]);

    const action = encodeURIComponent('POST /v1/imports/:id/apply');
    const audit = await world.call<{ items: object[] }>('GET', `/v1/audit?subject=${plan.id}&action=${action}`);
    expect(audit.body.items.slice(0, 2)).toMatchObject([
      { keyId: 'admin', subjects: { import: [plan.id] }, outcome: 'override deletes' },
      { keyId: 'admin', subjects: { import: [plan.id] }, outcome: 'threshold-exceeded' },
    ]);
  });

  test('changes provider lists before it deletes providers, and keeps a provider who is still named', async () => {
    await imported('kind=clients', [
      providers('p-1', 'p-2', 'p-3', 'p-4'),
      clientsCsv([...many(6, 'c').map((id) => clientLine(id, ['p-1', 'p-2'])), clientLine('c-own', ['p-4'])]),
    ]);
    const before = world.platform.arrivals();
    const plan = await planned('kind=clients&mode=snapshot', [
      providers('p-3'),
      // The row of c-own is wrong, so that it keeps its list, and with it its provider.
      clientsCsv([...many(6, 'c').map((id) => clientLine(id, ['p-3'])), 'c-own,no mail,Cleo,Own,p-3']),
    ]);
    expect(plan.planned).toEqual({ unchanged: 1, 'provider-change': 6, rejected: 1, delete: 3 });
    const skipped = await rows(plan.id, 'outcome=skipped');
    expect(skipped.map((row) => [row.externalId, row.code])).toEqual([['p-4', 'provider-in-use']]);
    const refused = await steer(plan.id, 'apply');
    expect(refused.body.guards).toMatchObject([{ name: 'providerRemovals', count: 6, of: 7 }]);
    const view = await ended(plan.id, 'apply', ['providerRemovals']);
    expect([view.counts.updated, view.deletes]).toEqual([6, { deleted: 2, skipped: 1 }]);
    const operations = world.platform.simulator.state.arrivals.list().map(({ operation }) => operation);
    expect(operations.slice(before)).toEqual([...Array(6).fill('setClientProviders'), ...Array(2).fill('deleteUser')]);
    expect(world.platform.usersOf('p-4')).toHaveLength(1);
  });

  test.each<[string, string, string[], number]>([
    [
      'whose id is in any cell of a rejected row',
      '',
      [
        ...many(24, 'c').map((id) => clientLine(id, ['p-1'])),
        'c-0,c-25,,Cleo,c-25,p-1', // shifted by a name that was not quoted
        'c-1,c-26', // cut off
        'c-27,"Cleo,c-27,p-1', // a quote that is never closed
        'c-2,"x\nc-28,,Cleo,c-28",p-1', // a quote that swallows the next row
        'c-29,no mail,Cleo,c-29,p-1',
      ],
      4,
    ],
    [
      'whose row was swallowed by a quote in a column that is not read',
      ',note',
      many(29, 'c').map((id, at) => `${clientLine(id, ['p-1'])},${['"said so', 'and so"'][at - 5] ?? ''}`),
      0,
    ],
    [
      'who may be named by a row without an id',
      '',
      [...many(29, 'c').map((id) => clientLine(id, ['p-1'])), ',,A,B,p-1'],
      1,
    ],
  ])('never deletes a person %s', async (_, more, lines, nameless) => {
    await mirrored('kind=clients', [providers('p-1'), clients(many(30, 'c'), ['p-1'])]);
    const content = [`externalId,email,firstName,lastName,providers${more}`, ...lines].join('\n');
    const plan = await planned('kind=clients&mode=snapshot', [{ ...clientsCsv([]), content }]);
    expect((await rows(plan.id, 'planned=delete')).map((row) => row.externalId)).toEqual(['c-30']);
    const refused = await steer(plan.id, 'apply');
    if (nameless === 0) expect(refused.status).toBe(202);
    else expect([refused.status, refused.body.guards]).toMatchObject([409, [{ name: 'deletes', count: 1, nameless }]]);
  });

  test('of clients alone leaves providers alone', async () => {
    await mirrored('kind=clients', [providers('p-1', 'p-2'), clients(['c-1'], ['p-1'])]);
    const plan = await planned('kind=providers&mode=snapshot', [clients(['c-1'], ['p-1'])]);
    expect(plan.planned).toEqual({ unchanged: 1 });
  });

  test('counts a deletion that failed among the rows that need attention', async () => {
    await imported('kind=providers', [providers('p-1', 'p-2')]);
    const plan = await planned('kind=providers&mode=snapshot', [providers('p-1')]);
    expect(plan.needAttention).toBe(0);
    world.platform.injectFault({ kind: 'status', operation: 'deleteUser', status: 400, count: null });
    const view = await ended(plan.id, 'apply', ['deletes']);
    expect([view.deletes, view.needAttention]).toEqual([{ failed: 1 }, 1]);
  });
});

describe('a retry', () => {
  test('takes up failed rows; a client whose provider failed needs review until then', async () => {
    const bad = { operation: 'createProvider', status: 400, match: { partnerUserId: 'p-1' }, count: null };
    world.platform.injectFault({ kind: 'status', ...bad });
    const { id } = await imported('kind=clients', [
      providers('p-1', 'p-2'),
      clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-2'])]),
    ]);
    expect(await outcomes(id)).toEqual([
      ['p-1', 'failed', 'rejected'],
      ['p-2', 'created', null],
      ['c-1', 'needsReview', 'provider-not-mirrored'],
      ['c-2', 'created', null],
    ]);
    const before = world.platform.arrivals();
    world.platform.release();
    const again = await ended(id, 'retry');
    expect([again.counts.created, sumOfOutcomes(again), world.platform.arrivals() - before]).toEqual([4, 4, 3]);

    // Nothing is left to take up: the import stays finished, and the feed gets no third event.
    expect((await ended(id, 'retry')).finishedAt).toBe(again.finishedAt);
    const feed = await world.call<{ items: { type: string; subject: string; data: object }[] }>(
      'GET',
      '/v1/events?after=0&limit=200',
    );
    const finished = feed.body.items.filter(({ type }) => type === 'import.finished');
    expect(finished).toMatchObject(Array(2).fill({ subject: `imports/${id}`, data: { id, state: 'completed' } }));
  });

  test('leaves a row as it is whose person was deleted since', async () => {
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400, count: null });
    const { id } = await imported('kind=clients', [providers('p-1'), clients(['c-1'], ['p-1'])]);
    for (const path of ['clients/c-1', 'providers/p-1']) await world.call('DELETE', `/v1/${path}`, { wait: 60 });
    expect((await ended(id, 'retry')).counts).toMatchObject({ failed: 1, rejected: 0, skipped: 0 });
    expect(await world.sql('SELECT 1 FROM import_rows WHERE profile IS NOT NULL')).toEqual([]);
  });

  test('rejects a row whose provider is gone; the row comes back corrected', async () => {
    await imported('kind=providers', [providers('p-1', 'p-2')]);
    const file = clientsCsv([clientLine('c-1', ['p-1']), clientLine('c-2', ['p-2'])]);
    const plan = await planned('kind=clients&dryRun=true', [file]);
    await world.call('DELETE', '/v1/providers/p-2', { wait: 60 });
    expect((await ended(plan.id, 'apply')).counts).toMatchObject({ created: 1, skipped: 1 });
    expect((await ended(plan.id, 'retry')).counts).toMatchObject({ created: 1, rejected: 1 });
    // Of what was read, only the rejected row is kept.
    const withCells = () => world.sql('SELECT DISTINCT import_id AS id FROM import_raw_rows');
    expect(await withCells()).toEqual([{ id: plan.id }]);
    expect([...((await world.get(StagingRepository).blockOf(plan.id, 2))?.keys() ?? [])]).toEqual([2]);
    const [header, line = ''] = await rejected(plan.id);
    expect(line).toMatch(/^c-2,,Cleo,c-2,p-2,3,unknown-provider,/);
    const corrected = { ...file, content: [header, line.replace('p-2', 'p-1')].join('\r\n') };
    expect((await imported('kind=clients', [corrected])).counts).toMatchObject({ total: 1, created: 1 });
    expect(await withCells()).toEqual([{ id: plan.id }]);
  });

  test('rejects no provider, no client without a list, and no row for its duplicate', async () => {
    await imported('kind=providers', [providers('p-1', 'p-2')]);
    const plan = await planned('kind=clients&dryRun=true&defaultProvider=p-1', [
      providersCsv(['p-2,p-2@example.org,Pia,New', providerLine('p-2')]),
      clientsCsv([clientLine('c-1', []), clientLine('c-1', ['p-1'])]),
    ]);
    const body = { firstName: 'Any', lastName: 'Body' };
    await put('providers/p-2', { ...body, email: 'p-2@example.org' });
    await put('clients/c-1', { ...body, providers: ['p-2'] });
    const duplicate = ['rejected', 'duplicate-id'];
    const skipped = ['skipped', 'changed-since-plan'];
    const come = async () => (await outcomes(plan.id)).map(([, ...outcome]) => outcome);
    await ended(plan.id, 'apply');
    expect(await come()).toEqual([skipped, duplicate, skipped, duplicate]);
    await ended(plan.id, 'retry');
    expect(await come()).toEqual([['updated', 'not-pushable'], duplicate, ['updated', null], duplicate]);
  });

  test('checks the thresholds of its new plan', async () => {
    const ids = many(6, 'c');
    await imported('kind=clients', [providers('p-1', 'p-2', 'p-3'), clients(ids, ['p-1'])]);
    const plan = await planned('kind=clients&dryRun=true', [clients(ids, ['p-1', 'p-2'])]);
    // The plan adds a provider; the plan of the retry would take away the one that the clients have by then.
    for (const id of ids) await put(`clients/${id}/providers`, { providers: ['p-1', 'p-3'] });
    expect((await ended(plan.id, 'apply')).counts).toMatchObject({ skipped: 6 });
    const refused = await steer(plan.id, 'retry');
    expect([refused.status, refused.body.guards]).toMatchObject([409, [{ name: 'providerRemovals', count: 6 }]]);
    expect((await show(plan.id)).counts).toMatchObject({ skipped: 6 });
    expect((await ended(plan.id, 'retry', ['providerRemovals'])).counts).toMatchObject({ updated: 6 });
  });

  test('leaves a person in review who was changed since the plan', async () => {
    await imported('kind=providers', [providers('p-1', 'p-2')]);
    const body = { firstName: 'Any', lastName: 'Body', email: 'one@example.org', providers: ['p-1'] };
    await put('clients/c-1', body);
    await put('clients/c-2', body);
    const { id, counts } = await imported('kind=clients', [clientsCsv(['c-2,one@example.org,Any,Body,p-1'])]);
    expect(counts).toMatchObject({ needsReview: 1 });
    await put('clients/c-2', { firstName: 'New', lastName: 'Name', providers: ['p-2'] });
    expect((await ended(id, 'retry')).counts).toMatchObject({ skipped: 1 });
    const { body: changed } = await person('clients', 'c-2');
    expect(changed).toMatchObject({ firstName: 'New', email: null, providers: ['p-2'], sync: { state: 'synced' } });
  });
});
