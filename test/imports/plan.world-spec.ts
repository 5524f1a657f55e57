import { type ImportFile, sumOfOutcomes } from '../../harness/service.js';
import { clientLine, clientsCsv, many, providerLine, providersCsv, surprises } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';
import { openUpload } from './open-upload.js';

const world = useWorld();
const { start, imported, mirrored, planned, ended, transition, show, rows, outcomes } = importsIn(world);

const providers = (...ids: string[]) => providersCsv(ids.map((id) => providerLine(id)));
const clients = (ids: string[], list: string[]) => clientsCsv(ids.map((id) => clientLine(id, list)));
const csv = (name: string, ...lines: string[]): ImportFile => ({ name, type: 'text/csv', content: lines.join('\n') });
const bundle = (...entry: object[]): ImportFile => {
  const content = JSON.stringify({ resourceType: 'Bundle', type: 'transaction', entry });
  return { name: 'changes.json', type: 'application/fhir+json', content };
};

const person = (kind: string, id: string) => world.call('GET', `/v1/${kind}/${id}`);
const put = (path: string, body: object) => world.call('PUT', `/v1/${path}`, { body });
const remove = (path: string) => world.call('DELETE', `/v1/${path}`);
const deleted = async (id: string) => (await rows(id, 'planned=delete')).map(({ externalId }) => externalId);

/** p-1, p-2 and the clients, mirrored without a call. */
const known = (ids: string[], list = ['p-1']) => mirrored('', [providers('p-1', 'p-2'), clients(ids, list)]);

describe('a dry run', () => {
  test('says what will happen to each row and sends nothing; apply does exactly that', async () => {
    await imported('', [
      providers('p-1', 'p-2'),
      clientsCsv([
        clientLine('c-1', ['p-1']),
        clientLine('c-2', ['p-1']),
        clientLine('c-3', ['p-2'], 'c-3@mail.example'),
      ]),
    ]);
    const before = world.platform.arrivals();
    const plan = await planned('dryRun=true', [
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
        clientLine('c-4', ['p-1', 'p-4'], 'c-4@mail.example'),
        clientLine('c-5', ['p-4']),
        clientLine('c-6', ['p-5']),
        clientLine('c-7', ['p-unknown']),
      ]),
    ]);
    await world.settle();
    expect(world.platform.arrivals()).toBe(before);
    expect(plan.planned).toEqual({
      ...{ unchanged: 2, 'attribute-change': 1, 'provider-change': 1, 'create-or-link': 3 },
      ...{ 'needs-review': 2, rejected: 2 },
    });
    // p-4: 1 or 2; c-2: 1; c-4: 2 or 3; c-5: 1.
    expect(plan.calls).toEqual({ made: 0, remaining: { min: 5, max: 7 } });
    expect(plan.counts).toMatchObject({ total: 11, unchanged: 2, rejected: 2, pending: 7 });
    const behind = await rows(plan.id, 'planned=needs-review');
    expect(behind.map((row) => [row.file, row.line, row.externalId])).toEqual([
      ['providers.csv', 5, 'p-5'],
      ['clients.csv', 6, 'c-6'],
    ]);

    const view = await ended(plan.id, 'apply');
    expect([sumOfOutcomes(view), view.calls.made, world.platform.arrivals() - before]).toEqual([11, 7, 7]);
    const done = await rows(plan.id);
    expect(surprises(done)).toEqual([]);
    expect(done.flatMap(({ externalId, code }) => (code ? [[externalId, code]] : []))).toEqual([
      ['p-2', 'not-pushable'],
      ['p-5', 'email-taken'],
      ['p-6', 'bad-email'],
      ['c-6', 'provider-not-mirrored'],
      ['c-7', 'unknown-provider'],
    ]);
    for (const { externalId, code, hint } of done)
      expect([externalId, hint === null]).toEqual([externalId, code === null]);
  });

  test('leaves people as they are when it is cancelled', async () => {
    await known(['c-1']);
    const { id } = await planned('dryRun=true', [providers('p-9'), clients(['c-1'], ['p-9'])]);
    await transition(id, 'cancel');
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'cancelled', counts: { skipped: 2, total: 2 } });
    expect((await person('providers', 'p-9')).status).toBe(404);
    expect((await person('clients', 'c-1')).body).toMatchObject({ providers: ['p-1'], sync: { state: 'synced' } });
    expect(world.platform.arrivals()).toBe(0);
  });
});

describe('unchanged rows', () => {
  test('cost no call, and their content is not kept', async () => {
    const files = [
      providers('p-1', 'p-2'),
      clientsCsv([clientLine('c-1', ['p-1', 'p-2'], 'c-1@mail.example'), 'c-x,bad,A,B,p-1']),
    ];
    expect((await imported('', files)).counts).toMatchObject({ created: 3, rejected: 1 });
    const before = world.platform.arrivals();
    const again = await imported('', files);
    expect([again.counts.unchanged, again.counts.rejected, again.calls.made]).toEqual([3, 1, 0]);
    expect(world.platform.arrivals()).toBe(before);
    expect(await world.sql('SELECT 1 FROM import_rows WHERE profile IS NOT NULL')).toEqual([]);
  });

  test('are applied if an earlier import changes their people before the plan is applied', async () => {
    await imported('', [providers('p-1', 'p-2'), clients(['c-1'], ['p-1'])]);
    const earlier = await planned('dryRun=true', [clients(['c-1'], ['p-2'])]);
    const later = await planned('dryRun=true', [clients(['c-1'], ['p-1'])]);
    await ended(earlier.id, 'apply');
    expect((await person('clients', 'c-1')).body.providers).toEqual(['p-2']);
    await ended(later.id, 'apply');
    expect((await person('clients', 'c-1')).body.providers).toEqual(['p-1']);
  });
});

describe('the providers of a client', () => {
  test('stay if the file has no column for them', async () => {
    await known(['c-1'], ['p-2', 'p-1']);
    const { id } = await planned('dryRun=true', [
      csv('clients.csv', 'client id,first name,last name', 'c-1,Cleo,Renamed', 'c-new,Cleo,New'),
    ]);
    await ended(id, 'apply', ['idColumn']);
    expect(await outcomes(id)).toEqual([
      ['c-1', 'updated', 'not-pushable'],
      ['c-new', 'rejected', 'no-provider'],
    ]);
    expect((await person('clients', 'c-1')).body).toMatchObject({ lastName: 'Renamed', providers: ['p-2', 'p-1'] });
  });

  test('are the default provider if none is named', async () => {
    await known(['c-1', 'c-2']);
    const column = await planned('dryRun=true&defaultProvider=p-2', [clients(['c-1'], [])]);
    expect(column.planned).toEqual({ 'provider-change': 1 });
    const { id } = await planned('dryRun=true&defaultProvider=p-2', [
      csv('clients.csv', 'client id,first name,last name', 'c-2,Cleo,c-2', 'c-new,Cleo,New'),
    ]);
    await transition(id, 'apply', ['idColumn']);
    await world.work.imports();
    const lists = await Promise.all(['c-2', 'c-new'].map((one) => person('clients', one)));
    expect(lists.map(({ body }) => body.providers)).toEqual([['p-1'], ['p-2']]);
  });

  test('count in the order in which they are named', async () => {
    await known(['c-1'], ['p-1', 'p-2']);
    expect((await planned('dryRun=true', [clients(['c-1'], ['p-2', 'p-1'])])).planned).toEqual({
      'provider-change': 1,
    });
  });
});

describe('repeated rows', () => {
  test('are united: one row per client and clinician is one client', async () => {
    await known(['c-1'], ['p-1', 'p-2']);
    const { id, planned: counts } = await planned('dryRun=true', [
      clientsCsv([
        ...[clientLine('c-new', ['p-2']), clientLine('c-1', ['p-1']), clientLine('c-new', ['p-1'])],
        ...[clientLine('c-1', ['p-2']), clientLine('c-new', ['p-2'])],
      ]),
    ]);
    expect([counts, await outcomes(id)]).toEqual([
      { 'create-or-link': 1, unchanged: 1 },
      [
        ['c-new', 'pending', null],
        ['c-1', 'unchanged', null],
        ['c-new', 'skipped', 'repeated'],
        ['c-1', 'skipped', 'repeated'],
        ['c-new', 'skipped', 'repeated'],
      ],
    ]);
    await transition(id, 'apply');
    await world.work.imports();
    expect((await person('clients', 'c-new')).body.providers).toEqual(['p-2', 'p-1']);
  });

  test.each([
    ['new', []],
    ['unchanged', ['c-1']],
  ])('are rejected if they contradict a %s row, naming its line', async (_, ids) => {
    await known(ids);
    const { id } = await planned('dryRun=true', [
      clientsCsv([clientLine('c-1', ['p-1']), 'c-1,,Cleo,Other,p-1', clientLine('c-1', ['p-2'])]),
    ]);
    const codes = (await rows(id)).map(({ line, code }) => [line, code]);
    expect(codes.filter(([, code]) => code === 'duplicate-id')).toEqual([[3, 'duplicate-id']]);
    const [{ hint } = { hint: '' }] = await rows(id, 'code=duplicate-id');
    expect(hint).toMatch(/first used in line [24]\./);
    await transition(id, 'apply');
    await world.work.imports();
    expect((await person('clients', 'c-1')).body).toMatchObject({ lastName: 'c-1', providers: ['p-1', 'p-2'] });
  });

  test('may spell their id in different Unicode forms; the form that is known stays', async () => {
    const [composed, decomposed] = ['c-\u00e9', 'c-e\u0301'];
    await put('providers/p-1', { email: 'p-1@example.org', firstName: 'Pia', lastName: 'p-1' });
    await put(`clients/${encodeURIComponent(decomposed)}`, { firstName: 'Cleo', lastName: 'X', providers: ['p-1'] });
    await world.settle();
    const { id } = await planned('dryRun=true', [clientsCsv([`${composed},,Cleo,X,p-1`, `${decomposed},,Cleo,X,p-1`])]);
    expect(await outcomes(id)).toEqual([
      [decomposed, 'unchanged', null],
      [decomposed, 'skipped', 'repeated'],
    ]);
  });
});

test('ids of people and their providers keep the Unicode form in which they were first written', async () => {
  const [composed, decomposed] = ['\u00e9', 'e\u0301'];
  await imported('', [providers(decomposed), clients([`c-${decomposed}`], [composed])]);
  const stored = await person('clients', encodeURIComponent(`c-${decomposed}`));
  expect(stored.body).toMatchObject({
    externalId: `c-${decomposed}`,
    providers: [decomposed],
    sync: { state: 'synced' },
  });
  const again = await imported('', [providers(composed), clients([`c-${composed}`], [decomposed])]);
  expect(again.counts).toMatchObject({ total: 2, created: 0, updated: 2 });
});

describe('inactive people', () => {
  const file = (...lines: string[]) => csv('clients.csv', 'client id,first name,last name,providers,status', ...lines);

  test('are skipped if they are unknown, and left as they are if they are known', async () => {
    await known(['c-1']);
    const view = await imported('', [file('c-1,Cleo,Other,p-2,inactive', 'c-new,Cleo,New,p-1,deceased')]);
    expect(await outcomes(view.id)).toEqual([
      ['c-1', 'unchanged', 'inactive'],
      ['c-new', 'skipped', 'inactive'],
    ]);
    expect((await person('clients', 'c-1')).body).toMatchObject({ lastName: 'c-1', providers: ['p-1'] });
    expect([(await person('clients', 'c-new')).status, world.platform.arrivals()]).toEqual([404, 0]);
  });

  test('count as present in a snapshot', async () => {
    await known(['c-1', 'c-2']);
    const { id } = await planned('mode=snapshot', [file('c-1,Cleo,c-1,p-1,inactive')]);
    expect(await deleted(id)).toEqual(['c-2']);
  });
});

describe('a snapshot', () => {
  test('deletes the missing people, above the threshold only with its override', async () => {
    const ids = many(12, 'c');
    await imported('', [providers('p-1'), clients(ids, ['p-1'])]);
    const plan = await planned('mode=snapshot', [clients(ids.slice(0, 6), ['p-1'])]);
    expect([plan.planned, plan.counts.total, plan.deletes]).toEqual([{ unchanged: 6, delete: 6 }, 6, { pending: 6 }]);
    for (const override of [undefined, ['providerRemovals']]) {
      const { status, body } = await transition(plan.id, 'apply', override);
      expect([status, body.type]).toEqual([409, 'urn:notebridge:problem:threshold-exceeded']);
      expect(body.guards).toMatchObject([{ name: 'deletes', count: 6, of: 12 }]);
    }
    await world.settle();
    expect([(await show(plan.id)).state, world.platform.arrivals('deleteUser')]).toEqual(['planned', 0]);

    const { counts } = await ended(plan.id, 'apply', ['deletes']);
    expect([counts.unchanged, counts.deleted, sumOfOutcomes({ counts })]).toEqual([6, 6, 6]);
    expect(ids.filter((id) => world.platform.usersOf(id).length > 0)).toEqual(ids.slice(0, 6));
    const action = encodeURIComponent('POST /v1/imports/:id/apply');
    const audit = await world.call<{ items: object[] }>('GET', `/v1/audit?subject=${plan.id}&action=${action}`);
    expect(audit.body.items.slice(0, 2)).toMatchObject([
      { subjects: { import: [plan.id] }, outcome: 'override deletes' },
      { subjects: { import: [plan.id] }, outcome: 'threshold-exceeded' },
    ]);
  });

  test('changes lists before it deletes providers, and keeps a provider that is still named', async () => {
    await imported('', [
      providers('p-1', 'p-2', 'p-3', 'p-4'),
      clientsCsv([...many(3, 'c').map((id) => clientLine(id, ['p-1', 'p-2'])), clientLine('c-own', ['p-4'])]),
    ]);
    const before = world.platform.arrivals();
    const plan = await planned('mode=snapshot', [
      providers('p-3'),
      // The row of c-own is rejected, so that it keeps its list, and with it its provider.
      clientsCsv([...many(3, 'c').map((id) => clientLine(id, ['p-3'])), 'c-own,no mail,Cleo,Own,p-3']),
    ]);
    expect(plan.planned).toEqual({ unchanged: 1, 'provider-change': 3, rejected: 1, delete: 3 });
    const view = await ended(plan.id, 'apply', ['providerRemovals', 'deletes']);
    expect([view.counts.updated, view.deletes]).toEqual([3, { deleted: 2, skipped: 1 }]);
    expect(await rows(plan.id, 'outcome=skipped')).toMatchObject([{ externalId: 'p-4', code: 'provider-in-use' }]);
    const operations = world.platform.simulator.state.arrivals.list().map(({ operation }) => operation);
    expect(operations.slice(before)).toEqual([...Array(3).fill('setClientProviders'), ...Array(2).fill('deleteUser')]);
    expect(world.platform.usersOf('p-4')).toHaveLength(1);
  });

  test('keeps a provider that the EHR gave to a client after the plan', async () => {
    await imported('', [providers('p-1', 'p-2'), clients(['c-1'], ['p-1'])]);
    const { id } = await planned('mode=snapshot', [providers('p-1')]);
    await world.call('PUT', '/v1/clients/c-1/providers', { body: { providers: ['p-2'] }, wait: 60 });
    expect((await ended(id, 'apply')).deletes).toEqual({ skipped: 1 });
    expect(await rows(id, 'planned=delete')).toMatchObject([{ externalId: 'p-2', code: 'provider-in-use' }]);
  });

  test.each<[string, string[]]>([
    ['was shifted by a name without quotes', ['c-0,c-29,,Cleo,c-29,p-1']],
    ['was cut off', ['c-0,c-29']],
    ['has a quote that is never closed', ['c-29,"Cleo,c-29,p-1']],
    ['has no id', [',,A,B,p-1']],
  ])('deletes no one while a row %s', async (_, lines) => {
    const ids = many(30, 'c');
    await known(ids);
    const present = ids.slice(0, 28).map((id) => clientLine(id, ['p-1']));
    const view = await planned('mode=snapshot', [clientsCsv([...present, ...lines])]);
    expect([await deleted(view.id), view.unclearRows]).toEqual([[], 1]);
    const whole = await planned('mode=snapshot', [clientsCsv(present)]);
    expect(await deleted(whole.id)).toEqual(['c-29', 'c-30']);
  });

  test('deletes neither people with a rejected row nor those named in a cell with line breaks', async () => {
    const ids = many(6, 'c');
    await known(ids);
    const { id, unclearRows } = await planned('mode=snapshot', [
      csv(
        'clients.csv',
        'externalId,email,firstName,lastName,providers,note',
        `${clientLine('c-1', ['p-1'])},fine`,
        `${clientLine('c-2', ['p-1'])},"first`,
        `${clientLine('c-3', ['p-1'])},second"`, // the quotes swallow this row
        `c-4,no mail,Cleo,c-4,p-1,`,
        `${clientLine('c-5', ['p-unknown'])},`,
      ),
    ]);
    expect([await deleted(id), unclearRows]).toEqual([['c-6'], 0]);
  });

  test('deletes only people of a kind that it contains', async () => {
    await known(['c-1', 'c-2']);
    const { id } = await planned('mode=snapshot', [clients(['c-1'], ['p-1'])]);
    expect(await deleted(id)).toEqual(['c-2']);
  });

  test('counts a failed deletion among the rows that need attention', async () => {
    await imported('', [providers('p-1', 'p-2')]);
    const plan = await planned('mode=snapshot', [providers('p-1')]);
    world.platform.injectFault({ kind: 'status', operation: 'deleteUser', status: 400, count: null });
    const view = await ended(plan.id, 'apply');
    expect([plan.needAttention, view.deletes, view.needAttention]).toEqual([0, { failed: 1 }, 1]);
  });

  test('has statistics of the many deletions that a few rows lead to', async () => {
    await world.sql(
      `INSERT INTO people (id, kind, external_id, state)
       SELECT gen_random_uuid(), 'provider', 'p-' || i, 'synced' FROM generate_series(1, 1500) AS i`,
    );
    await world.sql('ANALYZE import_rows');
    const { planned: outcomes } = await planned('mode=snapshot', [providers('p-new')]);
    expect(outcomes).toEqual({ delete: 1_500, 'create-or-link': 1 });
    // Without them, the statements of the plan compared each deletion with each other one.
    const [table] = await world.sql<{ rows: number }>(
      `SELECT reltuples AS rows FROM pg_class WHERE relname = 'import_rows'`,
    );
    expect(table?.rows).toBeGreaterThanOrEqual(1_500);
  });
});

describe('explicit deletions', () => {
  const named = (id: string) => ({ name: [{ given: ['Cleo'], family: id }] });
  const patient = (id: string) => ({
    resource: { resourceType: 'Patient', id, ...named(id), generalPractitioner: [{ reference: 'Practitioner/p-1' }] },
  });
  const removal = (url: string) => ({ request: { method: 'DELETE', url } });

  test.each([
    ['upsert', ['c-2']],
    ['snapshot', ['c-2', 'c-3']],
  ])('wait for the guard in mode %s', async (mode, gone) => {
    await known(['c-1', 'c-2', 'c-3']);
    const id = await start(`mode=${mode}`, [
      bundle(patient('c-1'), removal('Patient/c-2'), removal('Patient/c-never')),
    ]);
    await world.settle();
    expect([(await show(id)).state, await deleted(id)]).toEqual(['planned', gone]);
    expect(await rows(id, 'code=already-deleted')).toMatchObject([{ externalId: 'c-never', outcome: 'skipped' }]);
    expect((await transition(id, 'apply')).body.guards).toMatchObject([{ name: 'deletes', exceeded: true }]);
    expect((await transition(id, 'apply', ['deletes'])).status).toBe(202);
    await world.work.imports();
    const states = await Promise.all(gone.map((one) => person('clients', one)));
    expect(states.map(({ body }) => [body.firstName, body.sync.state])).toEqual(gone.map(() => ['', 'deleting']));
  });

  test('keep a provider that clients still name', async () => {
    await known(['c-1']);
    const id = await start('', [bundle(removal('Practitioner/p-1'), removal('Practitioner/p-2'))]);
    await world.work.imports();
    expect(await outcomes(id)).toEqual([
      ['p-1', 'skipped', 'provider-in-use'],
      ['p-2', 'pending', null],
    ]);
  });
});

describe('the deletion of accounts that are linked by email', () => {
  /** An account that was on the platform before, such as one of an OrgAdmin. */
  async function linked() {
    const user = { email: 'p-1@example.org', firstName: 'A', lastName: 'B', providerUserIds: [] };
    world.platform.simulator.state.users.add({ role: 'OrgAdmin', ...user });
    await imported('', [providers('p-1', 'p-2', 'p-3')]);
    expect((await person('providers', 'p-1')).body.origin).toBe('linked');
    // The database knows microseconds.
    await world.sql(`UPDATE people SET wanted_version = wanted_version + 1`);
    return planned('mode=snapshot', [providers('p-2', 'p-3')]);
  }
  const left = () => world.platform.simulator.state.users.list().length;

  test('waits for the guard, whose confirmation covers it', async () => {
    const { id, guards } = await linked();
    expect(guards.find(({ name }) => name === 'deletes')).toMatchObject({ count: 1, exceeded: true });
    expect((await transition(id, 'apply')).status).toBe(409);
    expect((await ended(id, 'apply', ['deletes'])).deletes).toEqual({ deleted: 1 });
    expect(left()).toBe(2);
  });

  test('needs a review if the account was linked again after the plan', async () => {
    const { id } = await linked();
    await world.sql(`UPDATE people SET wanted_version = wanted_version + 1`);
    expect((await ended(id, 'apply', ['deletes'])).deletes).toEqual({ needsReview: 1 });
    expect([await rows(id, 'code=delete-linked'), left()]).toMatchObject([[{ externalId: 'p-1' }], 3]);
  });
});

describe('emails', () => {
  test('stay with the person that has them, or with the first row', async () => {
    await imported('', [providers('p-1'), clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example')])]);
    const { id } = await imported('', [
      clientsCsv([
        clientLine('c-2', ['p-1'], 'one@mail.example'),
        clientLine('c-3', ['p-1'], 'two@mail.example'),
        clientLine('c-4', ['p-1'], 'TWO@mail.example'),
      ]),
    ]);
    expect(await outcomes(id)).toEqual([
      ['c-2', 'needsReview', 'email-taken'],
      ['c-3', 'created', null],
      ['c-4', 'needsReview', 'email-taken'],
    ]);
  });

  test('are free if the same plan deletes the people that have them', async () => {
    await imported('', [
      providers('p-1'),
      clientsCsv([clientLine('c-1', ['p-1'], 'one@mail.example'), clientLine('c-2', ['p-1'])]),
    ]);
    const { id } = await planned('mode=snapshot', [
      clientsCsv([clientLine('c-2', ['p-1']), clientLine('c-new', ['p-1'], 'one@mail.example')]),
    ]);
    const view = await ended(id, 'apply');
    expect([view.counts.created, view.counts.needsReview, view.deletes]).toEqual([1, 0, { deleted: 1 }]);
  });
});

describe('a change by the EHR after the upload began', () => {
  const file = () => clients(['c-1', 'c-2', 'c-new'], ['p-2']);

  /** Changes everyone of the file. */
  async function changeAll(): Promise<void> {
    await put('clients/c-1', { firstName: 'Now', lastName: 'One', providers: ['p-1'] });
    await remove('clients/c-2');
    await put('clients/c-new', { firstName: 'Now', lastName: 'New', providers: ['p-1'] });
  }

  async function expectLatest(id: string): Promise<void> {
    await world.work.imports();
    expect(await outcomes(id)).toEqual(['c-1', 'c-2', 'c-new'].map((one) => [one, 'skipped', expect.any(String)]));
    const all = await Promise.all(['c-1', 'c-2', 'c-new'].map((one) => person('clients', one)));
    expect(all.map(({ body }) => [body.firstName, body.providers])).toEqual([
      ['Now', ['p-1']],
      ['', expect.anything()],
      ['Now', ['p-1']],
    ]);
  }

  test('wins during the upload', async () => {
    await known(['c-1', 'c-2']);
    const end = await openUpload(world, 'kind=clients');
    await changeAll();
    await expectLatest(await end(file().content as string));
  });

  test('wins before the plan', async () => {
    await known(['c-1', 'c-2']);
    const id = await start('dryRun=true', [file()]);
    await changeAll();
    await expectLatest(id);
  });

  test('wins before the plan is applied', async () => {
    await known(['c-1', 'c-2']);
    const { id } = await planned('dryRun=true', [file()]);
    await changeAll();
    await transition(id, 'apply');
    await expectLatest(id);
  });

  test('keeps a person from being deleted by a snapshot that does not name it', async () => {
    await known(['c-1', 'c-2', 'c-3']);
    const end = await openUpload(world, 'kind=clients&mode=snapshot');
    await put('clients/c-new', { firstName: 'Now', lastName: 'New', providers: ['p-1'] });
    const id = await end(clients(['c-1'], ['p-1']).content as string);
    await world.work.imports();
    expect(await deleted(id)).toEqual(['c-2', 'c-3']);
    await put('clients/c-2', { firstName: 'Now', lastName: 'Two', providers: ['p-1'] });
    await transition(id, 'apply', ['deletes']);
    await world.work.imports();
    expect((await rows(id, 'planned=delete')).map(({ externalId, outcome }) => [externalId, outcome])).toEqual([
      ['c-2', 'skipped'],
      ['c-3', 'pending'],
    ]);
  });
});
