import type { FaultKind } from '../../simulator/gate/fault-rule.js';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
/** Makes a delete succeed, because a 404 of one is believed only at a URL where one has succeeded. */
async function deleteOne(): Promise<void> {
  await put('clients/proof');
  await remove('clients/proof');
}

const { begin, beginRemoval, put, remove, get, settled, resolve, verdict, verdictOf, callsDuring } = peopleOf(world);

const SYNCED = ['synced', null];
const usersOf = (externalId: string) => world.platform.usersOf(externalId);
/** Lets the grace period of a lost answer pass, and the wait after a failure. */
const later = async () => {
  await world.advance('2 min');
  await world.settle();
};
const removeUser = (externalId: string) => {
  const { users } = world.platform.simulator.state;
  for (const user of usersOf(externalId)) users.remove(user);
};
const resolved = async (path: string, body: object) => {
  await resolve(path, body);
  return verdictOf(await settled(path));
};

beforeEach(() => put('providers/home'));
afterEach(() => {
  expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
});

describe('after a lost answer', () => {
  test.each<FaultKind>(['commit-then-cut', 'commit-then-500', 'bad-json'])(
    'a create with an email (%s) is looked up once after the grace period',
    async (kind) => {
      world.platform.injectFault({ operation: 'createProvider', kind });
      const calls = await callsDuring(async () => {
        expect((await put('providers/lost')).sync.state).toBe('pending');
        await later();
      });
      expect(calls).toEqual(['checkUser', 'createProvider', 'checkUser']);
      expect(await verdict('providers/lost')).toEqual(SYNCED);
      expect(usersOf('lost')).toHaveLength(1);
    },
  );

  test.each([
    ['createProvider', ['checkUser', 'createProvider', 'checkUser', 'createProvider']],
    ['checkUser', ['checkUser', 'checkUser', 'createProvider']],
  ])('a %s that had no effect is sent again', async (operation, expected) => {
    world.platform.injectFault({ operation, kind: 'status', status: 503 });
    const calls = await callsDuring(async () => {
      await put('providers/lost');
      await later();
      await later();
    });
    expect(calls).toEqual(expected);
    expect(await verdict('providers/lost')).toEqual(SYNCED);
  });

  test.each<FaultKind>(['commit-then-cut', 'commit-then-500'])('a list (%s) is sent again', async (kind) => {
    const { platformUserId } = await put('providers/second');
    await put('clients/list');
    world.platform.injectFault({ operation: 'setClientProviders', kind });
    await put('clients/list', { providers: ['second'] });
    await later();
    expect(await verdict('clients/list')).toEqual(SYNCED);
    expect(world.platform.arrivals('setClientProviders')).toBe(2);
    expect(usersOf('list')).toMatchObject([{ providerUserIds: [platformUserId] }]);
  });

  test('a delete is sent again, and its 404 counts as success', async () => {
    await deleteOne();
    await put('clients/gone');
    world.platform.injectFault({ operation: 'deleteUser', kind: 'commit-then-cut' });
    await remove('clients/gone');
    const body = { kind: 'client', externalId: 'gone' };
    const { body: trace } = await world.call<TraceResponse>('POST', '/v1/people/trace', { body });
    expect([trace.history[0]?.outcome, trace.known.unsettledCreate]).toEqual(['unknown-outcome', null]);
    await later();
    expect(await verdict('clients/gone')).toEqual(['deleted', null]);
    expect(world.platform.usersOf('gone')).toEqual([]);
    expect(world.platform.arrivals('deleteUser')).toBe(1 + 2); // one of them is the proof's
  });
});

describe('a DELETE answered 200 with a body that reports a failure', () => {
  beforeEach(async () => {
    const deleteUser = { response: { deleted: '/success' } };
    await world.restart({ PLATFORM_CONTRACT: contractFile([], { deleteUser }) });
    await put('clients/kept');
  });
  const answer = (body: object) => world.platform.injectFault({ operation: 'deleteUser', kind: 'answer', body });

  test('is not a deletion: the client has failed with the words of the platform', async () => {
    answer({ success: false, message: 'The user has open sessions.' });
    const { sync, platformUserId } = await remove('clients/kept');
    expect([sync.state, sync.error?.code]).toEqual(['failed', 'rejected']);
    expect(sync.error?.platformMessage).toContain('The user has open sessions.');
    expect(usersOf('kept')).toMatchObject([{ userId: platformUserId }]);
  });

  test('is sent again if it says neither true nor false', async () => {
    answer({ done: true });
    expect((await remove('clients/kept')).sync.state).toBe('deleting');
    answer({ success: true });
    await later();
    expect(await verdict('clients/kept')).toEqual(['deleted', null]);
  });
});

describe('a client without an email whose create got no answer', () => {
  let userId: string;
  beforeEach(async () => {
    world.platform.injectFault({ operation: 'createClient', kind: 'commit-then-cut' });
    expect(verdictOf(await put('clients/lost'))).toEqual(['needs-review', 'create-unknown']);
    userId = usersOf('lost')[0]?.userId ?? '';
  });
  const link = () => resolved('clients/lost', { action: 'link', platformUserId: userId });

  test('is not created again automatically, nor by a PUT or a retry', async () => {
    const calls = await callsDuring(async () => {
      await put('clients/lost');
      await resolve('clients/lost', { action: 'retry' });
      await later();
    });
    expect([calls, await verdict('clients/lost')]).toEqual([[], ['needs-review', 'create-unknown']]);
  });

  test('is linked by an operator, but not to the user of another person', async () => {
    const { platformUserId } = await put('clients/owner');
    expect((await resolve('clients/lost', { action: 'link', platformUserId })).status).toBe(409);
    expect(await link()).toEqual(SYNCED);
    expect((await get('clients/lost')).platformUserId).toBe(userId);
  });

  test('is created once more when an operator resolves it with create', async () => {
    removeUser('lost');
    expect(await resolved('clients/lost', { action: 'create' })).toEqual(SYNCED);
    expect(usersOf('lost')).toHaveLength(1);
  });

  test('stays ignored until it is PUT again, and shows no error once its next call is due', async () => {
    expect(await resolved('clients/lost', { action: 'ignore' })).toEqual(['failed', 'ignored']);
    expect(verdictOf(await put('clients/lost'))).toEqual(['needs-review', 'create-unknown']);
    await resolve('clients/lost', { action: 'ignore' });
    await resolve('clients/lost', { action: 'link', platformUserId: userId });
    expect(await verdict('clients/lost')).toEqual(['pending', null]);
  });

  test('deleted since then, needs review: a link deletes its user, ignore leaves it', async () => {
    expect(verdictOf(await remove('clients/lost'))).toEqual(['needs-review', 'delete-unknown']);
    expect(await link()).toEqual(['deleted', null]);
    expect(usersOf('lost')).toEqual([]);

    world.platform.injectFault({ operation: 'createClient', kind: 'commit-then-cut' });
    await put('clients/kept');
    await remove('clients/kept');
    const calls = await callsDuring(() => resolved('clients/kept', { action: 'ignore' }));
    expect([calls, await verdict('clients/kept')]).toEqual([[], ['deleted', null]]);
    expect(usersOf('kept')).toHaveLength(1);
  });
});

describe('one email of two people', () => {
  const [email, TAKEN] = ['shared@example.org', ['needs-review', 'email-taken']];

  test('belongs to the first; the second has no call, regardless of spelling and kind', async () => {
    await put('providers/first', { email });
    const calls = await callsDuring(async () => {
      expect(verdictOf(await put('providers/second', { email: 'Shared@Example.ORG' }))).toEqual(TAKEN);
      expect(verdictOf(await put('clients/third', { email: ' shared@example.org ' }))).toEqual(TAKEN);
      expect(verdictOf(await remove('clients/third'))).toEqual(['deleted', null]);
    });
    expect(calls).toEqual([]);
    expect(verdictOf(await put('providers/second'))).toEqual(SYNCED);
  });

  test('passes to the second when the first is deleted', async () => {
    for (const path of ['clients/first', 'clients/second']) await put(path, { email });
    await remove('clients/first');
    expect(await verdict('clients/second')).toEqual(SYNCED);
    expect(usersOf('second')).toHaveLength(1);
  });

  test('passes to the second when the first, not mirrored yet, takes another', async () => {
    world.platform.injectFault({ operation: 'checkUser', kind: 'status', status: 503, count: null, match: { email } });
    await put('clients/first', { email });
    expect(verdictOf(await put('clients/second', { email }))).toEqual(TAKEN);
    expect(verdictOf(await put('clients/first', { email: 'other@example.org' }))).toEqual(SYNCED);
    world.platform.release();
    await later();
    expect(await verdict('clients/second')).toEqual(SYNCED);
    expect(usersOf('first')).toMatchObject([{ email: 'other@example.org' }]);
    expect(usersOf('second')).toMatchObject([{ email }]);
  });
});

describe('a change that meets a call in flight', () => {
  test('a delete during a create deletes the new user', async () => {
    await begin('clients/torn', { email: 'torn@example.org' });
    const held = await world.untilHeld({ operation: 'createClient' });
    await beginRemoval('clients/torn');
    await held.answer();
    expect([await verdict('clients/torn'), usersOf('torn')]).toEqual([['deleted', null], []]);
  });

  test('a PUT during a delete creates the person again', async () => {
    const { platformUserId } = await put('clients/torn', { email: 'torn@example.org' });
    await beginRemoval('clients/torn');
    const held = await world.untilHeld({ operation: 'deleteUser' });
    await begin('clients/torn', { email: 'torn@example.org' });
    await held.answer();
    expect(await verdict('clients/torn')).toEqual(SYNCED);
    expect(usersOf('torn').map(({ userId }) => userId === platformUserId)).toEqual([false]);
  });

  test('a new list during a list wins', async () => {
    const [a, b] = [await put('providers/a'), await put('providers/b')];
    await put('clients/torn');
    await begin('clients/torn', { providers: ['a'] });
    const held = await world.untilHeld({ operation: 'setClientProviders' });
    await begin('clients/torn', { providers: ['b', 'a'] });
    await held.answer();
    expect(await verdict('clients/torn')).toEqual(SYNCED);
    expect(usersOf('torn')).toMatchObject([{ providerUserIds: [b.platformUserId, a.platformUserId] }]);
  });
});

describe('an answer of the platform', () => {
  test('rejecting a person is shown, and the next PUT tries again', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400 });
    const refused = await put('providers/refused');
    expect(verdictOf(refused)).toEqual(['failed', 'rejected']);
    expect(refused.sync.error?.platformMessage).toContain('Injected status');
    expect(verdictOf(await put('providers/refused'))).toEqual(SYNCED);
  });

  test('reporting a missing client needs review; resolving with create creates it again', async () => {
    await put('providers/other');
    await put('clients/proof');
    await put('clients/proof', { providers: ['other'] }); // a 404 to a list is believed once a list has succeeded
    await put('clients/missing');
    removeUser('missing');
    expect(verdictOf(await put('clients/missing', { providers: ['other'] }))).toEqual([
      'needs-review',
      'platform-user-missing',
    ]);
    expect(await resolved('clients/missing', { action: 'create' })).toEqual(SYNCED);
    expect(usersOf('missing')).toHaveLength(1);
  });

  test('with a user that is linked to another person needs review', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400 });
    await put('providers/m-1');
    const { userId } = world.platform.simulator.state.users.add({
      role: 'HealthcareProvider',
      email: 'm-2@example.org',
      firstName: 'M',
      lastName: 'M',
      providerUserIds: [],
    });
    await resolved('providers/m-1', { action: 'link', platformUserId: userId });
    expect(verdictOf(await put('providers/m-2'))).toEqual(['needs-review', 'platform-user-taken']);
  });
});
