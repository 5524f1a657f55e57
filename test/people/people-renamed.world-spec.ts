import type { Page } from '../../src/http/request/page.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';
import { importsIn } from '../imports/imports.js';
import { clientLine, clientsCsv, providerLine, providersCsv } from '../support/bulk.js';
import { identitiesIn } from '../support/renamed-people.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { put, get, begin, remove, verdict } = peopleOf(world);
const { rename, moved, redirect, newSession, sessionsOf, events, audited } = identitiesIn(world);
const { start, imported, planned, ended, outcomes } = importsIn(world);

beforeEach(() => put('providers/home'));

describe('a rename', () => {
  test('keeps the platform user, the data and the sessions, without a call', async () => {
    const before = await put('clients/old', { email: 'noor@example.org' });
    const session = await newSession('old');
    const calls = world.platform.arrivals();
    const renamed = await rename('clients/old', 'new');
    expect([renamed.status, renamed.body]).toMatchObject([200, { ...before, externalId: 'new' }]);
    expect(await get('clients/new')).toMatchObject({
      email: 'noor@example.org',
      platformUserId: before.platformUserId,
    });
    expect(await sessionsOf('new')).toEqual([[session, ['new']]]);
    await world.settle();
    expect(world.platform.arrivals()).toBe(calls);
  });

  test('works for a provider, whose clients then name the new id', async () => {
    await put('clients/c-1');
    await rename('providers/home', 'moved');
    expect((await get('clients/c-1')).providers).toEqual(['moved']);
    expect(await redirect('providers/home')).toEqual([301, '/v1/providers/moved']);
    expect(await moved('PUT', 'clients/c-2', { firstName: 'C', lastName: 'D', providers: ['home'] })).toEqual([
      ...[409, 'renamed', 'moved', '/providers/0'],
    ]);
    expect(await moved('PUT', 'clients/c-1/providers', { providers: ['moved', 'home'] })).toEqual([
      ...[409, 'renamed', 'moved', '/providers/1'],
    ]);
  });

  test('redirects a GET of the old id, also after another rename', async () => {
    await put('clients/old');
    await rename('clients/old', 'new/1');
    expect(await redirect('clients/old')).toEqual([301, '/v1/clients/new%2F1']);
    await rename('clients/new%2F1', 'newest');
    expect(await redirect('clients/old')).toEqual([301, '/v1/clients/newest']);
  });

  test('lets every other request that names the old id be answered 409 with the new one', async () => {
    await put('clients/old');
    await rename('clients/old', 'new');
    const profile = { firstName: 'A', lastName: 'B', providers: ['home'] };
    const session = { provider: 'home', client: 'old', noteTemplateIds: [SOAP], input: { text: { text: 'x' } } };
    const answers = [
      await moved('PUT', 'clients/old', profile),
      await moved('DELETE', 'clients/old'),
      await moved('PUT', 'clients/old/providers', { providers: ['home'] }),
      await moved('POST', 'clients/old/resolve', { action: 'retry' }),
      await moved('POST', 'clients/old/rename', { externalId: 'other' }),
      await moved('POST', 'clients/old/merge', { into: 'new' }),
      await moved('POST', 'people/trace', { kind: 'client', externalId: 'old' }),
      await moved('POST', 'people/search', { externalId: 'old' }),
      await moved('GET', 'clients/old/disclosures'),
      await moved('GET', 'clients/old/export'),
      await moved('GET', 'sessions?client=old'),
    ];
    expect(answers.map((answer) => answer.slice(0, 3))).toEqual(answers.map(() => [409, 'renamed', 'new']));
    expect(await moved('POST', 'sessions', session)).toEqual([409, 'renamed', 'new', '/client']);
  });

  test('finds who has an id now, although someone of the other kind had it before', async () => {
    await put('clients/old');
    await rename('clients/old', 'new');
    await put('providers/old');
    const { body } = await world.call<Page<PersonResponse>>('POST', '/v1/people/search', {
      body: { externalId: 'old' },
    });
    expect(body.items.map(({ kind }) => kind)).toEqual(['provider']);
  });

  test('refuses an id that is or was in use', async () => {
    await put('clients/a');
    await put('clients/b');
    await rename('clients/b', 'c');
    expect(await moved('POST', 'clients/a/rename', { externalId: 'b' })).toEqual([
      409,
      'id-taken',
      undefined,
      '/externalId',
    ]);
    expect(await moved('POST', 'clients/a/rename', { externalId: 'c' })).toEqual([
      409,
      'id-taken',
      undefined,
      '/externalId',
    ]);
    expect(await moved('POST', 'clients/c/rename', { externalId: 'b' })).toEqual([
      409,
      'id-taken',
      undefined,
      '/externalId',
    ]);
    expect(await moved('POST', 'clients/never/rename', { externalId: 'd' })).toMatchObject([404, 'client-not-found']);
  });

  test('answers 200 when repeated, is announced once, and found in the audit log by the new id', async () => {
    await put('clients/old');
    await rename('clients/old', 'new');
    expect((await rename('clients/old', 'new')).status).toBe(200);
    expect(await events('person.renamed')).toMatchObject([
      { subject: 'clients/new', data: { kind: 'client', externalId: 'new', formerExternalId: 'old' } },
    ]);
    for (const id of ['new', 'old'])
      expect(await audited(id)).toEqual(
        expect.arrayContaining(['PUT /v1/clients/:externalId', 'POST /v1/clients/:externalId/rename']),
      );
  });

  test('links the new id by a USER_CREATED with the old one, after a create without an answer', async () => {
    world.platform.injectFault({ operation: 'createClient', kind: 'commit-then-cut' });
    await put('clients/old');
    await rename('clients/old', 'new');
    const userId = world.platform.usersOf('old')[0]?.userId ?? '';
    const payload = { userId, externalUserId: 'old', role: 'Client' as const };
    world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
    await world.settle();
    expect((await get('clients/new')).platformUserId).toBe(userId);
    expect(await verdict('clients/new')).toEqual(['synced', null]);
  });

  test('stores the answer to a create in flight under the new id', async () => {
    await begin('clients/old');
    const held = await world.untilHeld({ operation: 'createClient' });
    await rename('clients/old', 'new');
    await held.answer();
    await world.settle();
    expect(await get('clients/new')).toMatchObject({
      platformUserId: world.platform.usersOf('old')[0]?.userId,
      sync: { state: 'synced' },
    });
  });

  test('lets the deletion erase what imports said under the old id', async () => {
    const id = await start('kind=clients', [clientsCsv([clientLine('old', ['home'])])]);
    await world.settle();
    await rename('clients/old', 'new');
    const export1 = await world.call<{ importRows: object[] }>('GET', '/v1/clients/new/export');
    expect(export1.body.importRows).toHaveLength(1);
    await remove('clients/new');
    expect(await world.sql('SELECT profile FROM import_rows WHERE import_id = $1', [id])).toEqual([{ profile: null }]);
  });
});

describe('an import after a rename', () => {
  const snapshot = 'kind=clients&mode=snapshot';

  test('rejects the rows of old ids, and no snapshot deletes the successor', async () => {
    await imported('kind=clients', [clientsCsv(['a', 'b'].map((id) => clientLine(id, ['home'])))]);
    await rename('clients/a', 'a-2');
    await rename('providers/home', 'home-2');
    const plan = await planned(snapshot, [
      providersCsv([providerLine('home')]),
      clientsCsv([clientLine('a', ['home-2']), clientLine('b', ['home'])]),
    ]);
    expect(plan.planned).toEqual({ rejected: 3 });
    expect(await outcomes(plan.id)).toEqual([
      ['home', 'rejected', 'renamed'],
      ['a', 'rejected', 'renamed'],
      ['b', 'rejected', 'renamed'],
    ]);
  });

  test('accepts the new id', async () => {
    await imported('kind=clients', [clientsCsv([clientLine('a', ['home'])])]);
    await rename('clients/a', 'a-2');
    const plan = await planned(snapshot, [clientsCsv(['a-2,,Cleo,a,home'])]);
    expect(plan.planned).toEqual({ unchanged: 1 });
  });

  test('rejects a row that was planned for the old id before', async () => {
    await put('clients/a');
    const plan = await planned('kind=clients&dryRun=true', [
      clientsCsv(['a', 'b'].map((id) => clientLine(id, ['home']))),
    ]);
    await rename('clients/a', 'a-2');
    await ended(plan.id, 'apply');
    expect(await outcomes(plan.id)).toEqual([
      ['a', 'rejected', 'renamed'],
      ['b', 'created', null],
    ]);
    expect(await redirect('clients/a')).toEqual([301, '/v1/clients/a-2']);
    expect((await get('clients/a-2')).firstName).toBe('Pia');
  });

  test('finishes a row that was applied under the old id', async () => {
    const id = await start('kind=clients', [clientsCsv([clientLine('a', ['home'])])]);
    await world.work.imports();
    await rename('clients/a', 'a-2');
    await world.settle();
    expect(await outcomes(id)).toEqual([['a', 'created', null]]);
    expect(await verdict('clients/a-2')).toEqual(['synced', null]);
  });

  test('refuses an old id as the default provider', async () => {
    await rename('providers/home', 'home-2');
    const form = new FormData();
    form.append('clients', new Blob(['externalId,firstName,lastName\nx,A,B\n'], { type: 'text/csv' }), 'clients.csv');
    const { status, body } = await world.call<{ externalId: string }>(
      'POST',
      '/v1/imports?kind=clients&defaultProvider=home',
      { body: form },
    );
    expect([status, body.externalId]).toEqual([409, 'home-2']);
  });
});
