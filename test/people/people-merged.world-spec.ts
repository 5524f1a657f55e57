import { createSession } from '../../simulator/sessions/session-routes.js';
import { importsIn } from '../imports/imports.js';
import { clientLine, clientsCsv } from '../support/bulk.js';
import { identitiesIn } from '../support/renamed-people.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { put, get, begin, remove, settled, verdict, verdictOf, resolve } = peopleOf(world);
const { rename, merge, moved, redirect, newSession, sessionsOf, events, audited } = identitiesIn(world);
const { start, imported, planned, ended, outcomes } = importsIn(world);

const hasUser = (userId: string | null) => world.platform.simulator.state.users.find(userId ?? '') !== undefined;
/** Creates a client through a create whose answer is lost, so that it has no user that is known. */
async function unmirrored(path: string): Promise<void> {
  world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400 });
  expect((await put(path)).sync.state).toBe('failed');
}

beforeEach(async () => {
  world.platform.set({ stepMs: 1 });
  await put('providers/home');
});

describe('a merge', () => {
  test('shows past and future sessions under the surviving client, and keeps both users', async () => {
    const a = await put('clients/a');
    const b = await put('clients/b');
    const [past, own] = [await newSession('a'), await newSession('b')];
    const merged = await merge('clients/a', 'b');
    expect([merged.status, merged.body.externalId, merged.body.platformUserId]).toEqual([200, 'b', b.platformUserId]);
    createSession(world.platform.simulator.state, {
      providerUserId: (await get('providers/home')).platformUserId ?? '',
      clientUserIds: [a.platformUserId ?? ''],
      noteTemplateIds: [SOAP],
      input: { kind: 'text', text: 'Future' },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: undefined,
    });
    await world.settle();
    const sessions = await sessionsOf('b');
    expect(sessions).toHaveLength(3);
    expect(sessions).toEqual(expect.arrayContaining([past, own].map((id) => [id, ['b']])));
    expect(new Set(sessions.flatMap(([, clients]) => clients))).toEqual(new Set(['b']));
    expect([hasUser(a.platformUserId), hasUser(b.platformUserId)]).toEqual([true, true]);
    expect(world.platform.arrivals('deleteUser')).toBe(0);
  });

  test('redirects a GET of the merged id, and answers other requests 409', async () => {
    await put('clients/a');
    await put('clients/b');
    await merge('clients/a', 'b');
    expect(await redirect('clients/a')).toEqual([301, '/v1/clients/b']);
    const profile = { firstName: 'A', lastName: 'B', providers: ['home'] };
    for (const [method, path, body] of [
      ['PUT', 'clients/a', profile],
      ['DELETE', 'clients/a'],
      ['POST', 'clients/a/rename', { externalId: 'x' }],
      ['POST', 'clients/a/resolve', { action: 'retry' }],
      ['POST', 'people/trace', { kind: 'client', externalId: 'a' }],
      ['GET', 'sessions?client=a'],
      ['GET', 'clients/a/export'],
    ] as const)
      expect([path, ...(await moved(method, path, body)).slice(0, 3)]).toEqual([path, 409, 'merged', 'b']);
    const { body } = await world.call<{ items: object[] }>('GET', '/v1/clients?state=deleted');
    expect(body.items).toEqual([]);
  });

  test('answers 200 when repeated, and is audited and announced once', async () => {
    await put('clients/a');
    await put('clients/b');
    await merge('clients/a', 'b');
    expect((await merge('clients/a', 'b')).status).toBe(200);
    expect(await events('person.merged')).toMatchObject([
      { subject: 'clients/b', data: { externalId: 'b', formerExternalId: 'a' } },
    ]);
    expect(await audited('b')).toEqual(expect.arrayContaining(['POST /v1/clients/:externalId/merge']));
    expect((await audited('b')).filter((action) => action === 'PUT /v1/clients/:externalId')).toHaveLength(2);
  });

  test('gives its user to a survivor without one, and frees the email', async () => {
    const email = 'noor@example.org';
    const a = await put('clients/a', { email });
    expect(verdictOf(await put('clients/b', { email, firstName: 'Noor' }))).toEqual(['needs-review', 'email-taken']);
    const creates = world.platform.arrivals('createClient');
    await merge('clients/a', 'b');
    const b = await settled('clients/b');
    expect(b).toMatchObject({ firstName: 'Noor', platformUserId: a.platformUserId, sync: { state: 'synced' } });
    expect(b.sync.notPushable).toContain('firstName');
    expect(world.platform.arrivals('createClient')).toBe(creates);
    expect(world.platform.usersOf('a')).toHaveLength(1);
  });

  test('wakes who waits for the email of the merged client', async () => {
    const email = 'noor@example.org';
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400 });
    await put('clients/a', { email });
    await put('clients/b');
    expect(verdictOf(await put('clients/c', { email }))).toEqual(['needs-review', 'email-taken']);
    await merge('clients/a', 'b');
    expect(verdictOf(await settled('clients/c'))).toEqual(['synced', null]);
  });

  test('sends the list again that an unanswered one of the merged client may have replaced', async () => {
    const a = await put('clients/a');
    await unmirrored('clients/b');
    await put('providers/second');
    await begin('clients/a', { providers: ['second', 'home'] });
    const held = await world.untilHeld({ operation: 'setClientProviders' });
    await merge('clients/a', 'b');
    await world.settle();
    await held.answer();
    await world.advance('3 min');
    await world.settle();
    const home = (await get('providers/home')).platformUserId;
    expect(world.platform.simulator.state.users.find(a.platformUserId ?? '')?.providerUserIds).toEqual([home]);
  });

  test.each([
    ['merged', 'clients/a'],
    ['surviving', 'clients/b'],
  ])('is refused while a create of the %s client is in flight', async (_which, path) => {
    await put(path === 'clients/a' ? 'clients/b' : 'clients/a');
    await begin(path);
    const held = await world.untilHeld({ operation: 'createClient' });
    expect((await moved('POST', 'clients/a/merge', { into: 'b' })).slice(0, 2)).toEqual([409, 'call-under-way']);
    await held.answer();
    await world.settle();
    expect((await merge('clients/a', 'b')).status).toBe(200);
  });

  test.each(['a', 'b'])('is refused while a session of client %s is requested', async (client) => {
    await put('clients/a');
    await put('clients/b');
    const input = { text: { text: 'x' } };
    await world.call('POST', '/v1/sessions', {
      headers: { prefer: 'wait=0' },
      body: { provider: 'home', client, noteTemplateIds: [SOAP], input },
    });
    expect((await moved('POST', 'clients/a/merge', { into: 'b' })).slice(0, 2)).toEqual([409, 'session-requested']);
    await world.settle();
    expect((await merge('clients/a', 'b')).status).toBe(200);
  });

  test('rejects itself, an unknown or deleted survivor, and a deleted client', async () => {
    await put('clients/a');
    await put('clients/gone');
    await remove('clients/gone');
    const answers = [
      await moved('POST', 'clients/a/merge', { into: 'a' }),
      await moved('POST', 'clients/a/merge', { into: 'never' }),
      await moved('POST', 'clients/a/merge', { into: 'gone' }),
      await moved('POST', 'clients/gone/merge', { into: 'a' }),
      await moved('POST', 'clients/never/merge', { into: 'a' }),
    ];
    expect(answers.map((answer) => answer.slice(0, 2))).toEqual([
      [422, 'same-client'],
      [422, 'unknown-client'],
      [422, 'unknown-client'],
      [409, 'client-deleted'],
      [404, 'client-not-found'],
    ]);
  });

  test('creates nothing for a client without a user', async () => {
    await unmirrored('clients/a');
    await put('clients/b');
    await merge('clients/a', 'b');
    await world.advance('2 h');
    await world.settle();
    expect(world.platform.usersOf('a')).toEqual([]);
    expect(await redirect('clients/a')).toEqual([301, '/v1/clients/b']);
  });

  test('ignores the late answer to a check of the merged client', async () => {
    await put('clients/b');
    await begin('clients/a', { email: 'noor@example.org' });
    const held = await world.untilHeld({ operation: 'checkUser' });
    await merge('clients/a', 'b');
    await held.answer();
    await world.advance('3 min');
    await world.settle();
    expect([world.platform.usersOf('a'), await redirect('clients/a')]).toEqual([[], [301, '/v1/clients/b']]);
  });

  test('can be merged again: all ids and sessions belong to the last survivor', async () => {
    for (const id of ['a', 'b', 'c']) await put(`clients/${id}`);
    const session = await newSession('a');
    await rename('clients/a', 'a-2');
    await merge('clients/a-2', 'b');
    await merge('clients/b', 'c');
    for (const id of ['a', 'a-2', 'b']) expect(await redirect(`clients/${id}`)).toEqual([301, '/v1/clients/c']);
    expect(await sessionsOf('c')).toEqual([[session, ['c']]]);
    expect((await moved('POST', 'clients/c/rename', { externalId: 'a' })).slice(0, 2)).toEqual([409, 'id-taken']);
  });
});

describe('USER_CREATED with a merged id', () => {
  test('links the survivor, never the merged client', async () => {
    await unmirrored('clients/a');
    await unmirrored('clients/b');
    await merge('clients/a', 'b');
    const userId = world.platform.simulator.state.users.add({
      ...{ role: 'Client', firstName: 'M', lastName: 'M', providerUserIds: [], partnerUserId: 'a' },
    }).userId;
    const payload = { userId, externalUserId: 'a', role: 'Client' as const };
    world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
    await world.settle();
    expect((await get('clients/b')).platformUserId).toBe(userId);
  });

  test('adds the user to the one that the survivor has', async () => {
    const [a, b] = [await put('clients/a'), await put('clients/b')];
    await merge('clients/a', 'b');
    const payload = { userId: a.platformUserId ?? '', externalUserId: 'a', role: 'Client' as const };
    world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
    await world.settle();
    expect((await get('clients/b')).platformUserId).toBe(b.platformUserId);
    const { body } = await world.call<{ items: object[] }>('GET', '/v1/people/unknown-to-ehr');
    expect(body.items).toEqual([]);
  });
});

describe('the deletion of a survivor', () => {
  test('deletes every user, one call after the other, and erases every name', async () => {
    const email = 'noor@example.org';
    const users = [await put('clients/a', { firstName: 'Secretname', email }), await put('clients/b')];
    users.push(await put('clients/c'));
    await merge('clients/a', 'b');
    await merge('clients/b', 'c');
    await remove('clients/c');
    expect(users.map(({ platformUserId }) => hasUser(platformUserId))).toEqual([false, false, false]);
    expect(world.platform.arrivals('deleteUser')).toBe(3);
    expect(await verdict('clients/c')).toEqual(['deleted', null]);
    expect((await events('person.deleted')).map(({ subject }) => subject)).toEqual(['clients/c']);
    expect(verdictOf(await put('clients/new', { email }))).toEqual(['synced', null]);
  });

  test('goes on with the others if one of them is gone already', async () => {
    const [a, b] = [await put('clients/a'), await put('clients/b')];
    await merge('clients/a', 'b');
    world.platform.simulator.state.users.remove(world.platform.usersOf('b')[0] as never);
    await remove('clients/b');
    expect([hasUser(a.platformUserId), hasUser(b.platformUserId)]).toEqual([false, false]);
    expect(await verdict('clients/b')).toEqual(['deleted', null]);
  });

  test('that is taken back goes on with the user that is left', async () => {
    const [a] = [await put('clients/a'), await put('clients/b')];
    await merge('clients/a', 'b');
    await world.call('DELETE', '/v1/clients/b');
    const held = await world.untilHeld({ operation: 'deleteUser' });
    await begin('clients/b');
    await held.answer();
    expect((await settled('clients/b')).platformUserId).toBe(a.platformUserId);
    expect(world.platform.arrivals('deleteUser')).toBe(1);
  });

  test('by a snapshot deletes every user, too', async () => {
    await imported('kind=clients', [clientsCsv(['a', 'b', 'c'].map((id) => clientLine(id, ['home'])))]);
    const a = await get('clients/a');
    await merge('clients/a', 'b');
    const plan = await planned('kind=clients&mode=snapshot', [clientsCsv([clientLine('c', ['home'])])]);
    expect(plan.planned).toEqual({ unchanged: 1, delete: 1 });
    await ended(plan.id, 'apply', ['deletes']);
    expect(hasUser(a.platformUserId)).toBe(false);
  });

  test.each([
    ['delete', false],
    ['ignore', true],
  ])(
    'stops at a user that was found only by its email, which it names, until an operator says %s',
    async (action, stays) => {
      const email = 'noor@example.org';
      const { userId } = world.platform.simulator.state.users.add({
        ...{ role: 'Client', firstName: 'M', lastName: 'M', providerUserIds: [], email },
      });
      expect((await put('clients/a', { email })).platformUserId).toBe(userId);
      const b = await put('clients/b');
      await merge('clients/a', 'b');
      await remove('clients/b');
      expect([hasUser(userId), hasUser(b.platformUserId)]).toEqual([true, false]);
      const stopped = await get('clients/b');
      expect([...verdictOf(stopped), stopped.platformUserId]).toEqual(['needs-review', 'delete-linked', userId]);
      expect((await resolve('clients/b', { action })).status).toBe(200);
      expect(verdictOf(await settled('clients/b'))).toEqual(['deleted', null]);
      expect(hasUser(userId)).toBe(stays);
    },
  );
});

test('an import that stated the merged client ends', async () => {
  await put('clients/b');
  const id = await start('kind=clients', [clientsCsv([clientLine('a', ['home'])])]);
  await world.work.imports();
  expect((await merge('clients/a', 'b')).status).toBe(200);
  await world.settle();
  expect(await outcomes(id)).toEqual([['a', 'skipped', 'changed-since-read']]);
  expect((await world.call<{ state: string }>('GET', `/v1/imports/${id}`)).body.state).toBe('completed');
});

test('an import rejects the row of a merged client, and no snapshot deletes the survivor', async () => {
  await imported('kind=clients', [clientsCsv(['a', 'b'].map((id) => clientLine(id, ['home'])))]);
  await merge('clients/a', 'b');
  const plan = await planned('kind=clients&mode=snapshot', [clientsCsv([clientLine('a', ['home'])])]);
  expect(plan.planned).toEqual({ rejected: 1 });
  expect(await outcomes(plan.id)).toEqual([['a', 'rejected', 'merged']]);
});

test('the export of a survivor has the calls and the former ids of the merged client', async () => {
  await put('clients/a');
  await put('clients/b');
  await merge('clients/a', 'b');
  type Export = { client: { formerIds: string[]; otherPlatformUserIds: string[] }; calls: object[] };
  const { body } = await world.call<Export>('GET', '/v1/clients/b/export');
  expect([body.client.formerIds, body.client.otherPlatformUserIds.length]).toEqual([['a'], 1]);
  expect(body.calls).toHaveLength(2);
});
