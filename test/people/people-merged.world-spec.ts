import { createSession } from '../../simulator/sessions/session-routes.js';
import { importsIn } from '../imports/imports.js';
import { clientLine, clientsCsv } from '../support/bulk.js';
import { identitiesIn } from '../support/renamed-people.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { put, get, begin, beginRemoval, remove, settled, verdict, verdictOf, resolve } = peopleOf(world);
const { rename, merge, unmerge, moved, redirect, newSession, sessionsOf, events, audited } = identitiesIn(world);
const { imported, planned, ended, outcomes } = importsIn(world);

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
      { subject: 'clients/b', data: { formerExternalId: 'a', platformUser: 'kept' } },
    ]);
    expect(await audited('b')).toEqual(expect.arrayContaining(['POST /v1/clients/:externalId/merge']));
    expect((await audited('b')).filter((action) => action === 'PUT /v1/clients/:externalId')).toHaveLength(2);
  });

  test('deletes the other user on request', async () => {
    const a = await put('clients/a');
    await put('clients/b');
    const session = await newSession('a');
    await merge('clients/a', 'b', { deletePlatformUser: true });
    await world.settle();
    expect(hasUser(a.platformUserId)).toBe(false);
    expect(await sessionsOf('b')).toEqual([[session, ['b']]]);
    expect(await moved('POST', 'clients/b/unmerge', { externalId: 'a' })).toEqual([
      ...[409, 'account-deleted', undefined, '/externalId'],
    ]);
  });

  test('deletes the kept user later if it is repeated with the request', async () => {
    const a = await put('clients/a');
    await put('clients/b');
    await merge('clients/a', 'b');
    await merge('clients/a', 'b', { deletePlatformUser: true });
    await world.settle();
    expect(hasUser(a.platformUserId)).toBe(false);
  });

  test('gives the user and its email claim to a survivor without one, without a call', async () => {
    const email = 'noor@example.org';
    const a = await put('clients/a', { email });
    expect(verdictOf(await put('clients/b', { email, firstName: 'Noor' }))).toEqual(['needs-review', 'email-taken']);
    const calls = world.platform.arrivals();
    await merge('clients/a', 'b');
    const b = await settled('clients/b');
    expect(b).toMatchObject({ firstName: 'Noor', platformUserId: a.platformUserId, sync: { state: 'synced' } });
    expect(world.platform.arrivals()).toBe(calls);
    expect(verdictOf(await put('clients/c', { email }))).toEqual(['needs-review', 'email-taken']);
  });

  test('is refused while a create of the merged client is in flight', async () => {
    await put('clients/b');
    await begin('clients/a');
    const held = await world.untilHeld({ operation: 'createClient' });
    expect((await moved('POST', 'clients/a/merge', { into: 'b' })).slice(0, 2)).toEqual([409, 'call-under-way']);
    await held.answer();
    await world.settle();
    expect((await merge('clients/a', 'b')).status).toBe(200);
  });

  test('is refused while a session of the merged client is requested', async () => {
    await put('clients/a');
    await put('clients/b');
    const input = { text: { text: 'x' } };
    await world.call('POST', '/v1/sessions', {
      headers: { prefer: 'wait=0' },
      body: { provider: 'home', client: 'a', noteTemplateIds: [SOAP], input },
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

  test('ignores the late answer to a list of the merged client', async () => {
    const a = await put('clients/a');
    await put('clients/b');
    await put('providers/second');
    await begin('clients/a', { providers: ['second', 'home'] });
    const held = await world.untilHeld({ operation: 'setClientProviders' });
    await merge('clients/a', 'b');
    await held.answer();
    await world.settle();
    expect([hasUser(a.platformUserId), await redirect('clients/a')]).toEqual([true, [301, '/v1/clients/b']]);
    await unmerge('clients/b', 'a');
    expect(await settled('clients/a')).toMatchObject({ platformUserId: a.platformUserId, sync: { state: 'synced' } });
  });

  test('can be merged again: everyone is under the last survivor, and an undo includes its merges', async () => {
    for (const id of ['a', 'b', 'c']) await put(`clients/${id}`);
    const session = await newSession('a');
    await merge('clients/a', 'b');
    await merge('clients/b', 'c');
    expect(await redirect('clients/a')).toEqual([301, '/v1/clients/c']);
    expect(await sessionsOf('c')).toEqual([[session, ['c']]]);
    await unmerge('clients/c', 'b');
    expect(await redirect('clients/a')).toEqual([301, '/v1/clients/b']);
    expect([await sessionsOf('b'), await sessionsOf('c')]).toEqual([[[session, ['b']]], []]);
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

  test('leaves a kept user with the merged client', async () => {
    const a = await put('clients/a');
    await unmirrored('clients/b');
    await begin('clients/b');
    await world.settle();
    await merge('clients/a', 'b');
    const payload = { userId: a.platformUserId ?? '', externalUserId: 'a', role: 'Client' as const };
    world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
    await world.settle();
    expect((await get('clients/b')).platformUserId).not.toBe(a.platformUserId);
    const { body } = await world.call<{ items: object[] }>('GET', '/v1/people/unknown-to-ehr');
    expect(body.items).toEqual([]);
  });
});

describe('the deletion of a survivor', () => {
  test('deletes the kept users, too, and erases every name', async () => {
    const a = await put('clients/a', { firstName: 'Secretname' });
    const b = await put('clients/b');
    await merge('clients/a', 'b');
    await remove('clients/b');
    expect([hasUser(a.platformUserId), hasUser(b.platformUserId)]).toEqual([false, false]);
    expect(await verdict('clients/b')).toEqual(['deleted', null]);
    const hashes = await world.sql('SELECT DISTINCT profile_hash, email_fingerprint FROM people WHERE kind = $1', [
      'client',
    ]);
    expect(hashes).toHaveLength(1);
  });

  test('by a snapshot deletes the kept users, too', async () => {
    await imported('kind=clients', [clientsCsv(['a', 'b', 'c'].map((id) => clientLine(id, ['home'])))]);
    const a = await get('clients/a');
    await merge('clients/a', 'b');
    const plan = await planned('kind=clients&mode=snapshot', [clientsCsv([clientLine('c', ['home'])])]);
    expect(plan.planned).toEqual({ unchanged: 1, delete: 1 });
    await ended(plan.id, 'apply', ['deletes']);
    expect(hasUser(a.platformUserId)).toBe(false);
  });

  test('leaves a kept user that was found only by its email to an operator', async () => {
    const email = 'noor@example.org';
    const { userId } = world.platform.simulator.state.users.add({
      ...{ role: 'Client', firstName: 'M', lastName: 'M', providerUserIds: [], email },
    });
    expect((await put('clients/a', { email })).platformUserId).toBe(userId);
    await put('clients/b');
    await merge('clients/a', 'b');
    await beginRemoval('clients/b');
    await world.settle();
    expect(hasUser(userId)).toBe(true);
    const { body } = await world.call<{ items: { externalId: string }[] }>('GET', '/v1/clients?state=needs-review');
    expect(body.items.map(({ externalId }) => externalId)).toEqual(['a']);
    expect((await resolve('clients/a', { action: 'delete' })).status).toBe(200);
    await world.settle();
    expect(hasUser(userId)).toBe(false);
  });
});

describe('an undone merge', () => {
  test('restores the client with its user, its data and its sessions', async () => {
    const a = await put('clients/a', { email: 'noor@example.org' });
    await put('clients/b');
    const session = await newSession('a');
    await merge('clients/a', 'b');
    const undone = await unmerge('clients/b', 'a');
    expect(undone.body).toMatchObject({ externalId: 'a', email: 'noor@example.org', platformUserId: a.platformUserId });
    expect(await settled('clients/a')).toMatchObject({ sync: { state: 'synced' }, providers: ['home'] });
    expect([await sessionsOf('a'), await sessionsOf('b')]).toEqual([[[session, ['a']]], []]);
    expect((await unmerge('clients/b', 'a')).status).toBe(200);
    expect(await events('person.unmerged')).toMatchObject([
      { subject: 'clients/a', data: { survivorExternalId: 'b' } },
    ]);
    await put('clients/a', { firstName: 'Again' });
    expect(verdictOf(await get('clients/a'))).toEqual(['synced', null]);
  });

  test('gives back a user that was taken over, with its email claim', async () => {
    const email = 'noor@example.org';
    const a = await put('clients/a', { email });
    await put('clients/b', { email });
    await merge('clients/a', 'b');
    await unmerge('clients/b', 'a');
    expect(await settled('clients/a')).toMatchObject({ platformUserId: a.platformUserId, sync: { state: 'synced' } });
    expect(verdictOf(await settled('clients/b'))).toEqual(['needs-review', 'email-taken']);
  });

  test('keeps the ids that the client had before', async () => {
    await put('clients/a');
    await put('clients/b');
    await rename('clients/a', 'a-2');
    await merge('clients/a-2', 'b');
    expect(await redirect('clients/a')).toEqual([301, '/v1/clients/b']);
    await unmerge('clients/b', 'a-2');
    expect(await redirect('clients/a')).toEqual([301, '/v1/clients/a-2']);
  });
});

test('an import rejects the row of a merged client, and no snapshot deletes the survivor', async () => {
  await imported('kind=clients', [clientsCsv(['a', 'b'].map((id) => clientLine(id, ['home'])))]);
  await merge('clients/a', 'b');
  const plan = await planned('kind=clients&mode=snapshot', [clientsCsv([clientLine('a', ['home'])])]);
  expect(plan.planned).toEqual({ rejected: 1 });
  expect(await outcomes(plan.id)).toEqual([['a', 'rejected', 'merged']]);
});

test('the export of a survivor has the data of the merged client', async () => {
  await put('clients/a', { firstName: 'Merged' });
  await put('clients/b');
  await merge('clients/a', 'b');
  const { body } = await world.call<{ mergedClients: { firstName: string }[] }>('GET', '/v1/clients/b/export');
  expect(body.mergedClients.map(({ firstName }) => firstName)).toEqual(['Merged']);
});
