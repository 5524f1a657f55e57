import type { FeedPageResponse } from '../../../src/feed/feed.dto.js';
import type { PlatformUserResponse } from '../../../src/people/api/person-view.js';
import { contractFile } from '../../support/contract-file.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { begin, beginRemoval, put, remove, get, resolve, settled, verdict, verdicts, verdictOf, callsDuring, health } =
  peopleOf(world);

const SYNCED = ['synced', null];
const REJECTED = ['failed', 'rejected'];
const usersOf = (externalId: string) => world.platform.usersOf(externalId);
const later = async (span: '16 s' | '2 min' | '61 min' | '3 d') => {
  await world.advance(span);
  await world.settle();
};
const refuse = (operation: string, status: number, match: Record<string, string> = {}) =>
  world.platform.injectFault({ operation, kind: 'status', status, count: null, match });
const vanish = (externalId: string) => {
  for (const user of usersOf(externalId)) world.platform.simulator.state.users.remove(user);
};

beforeEach(() => put('providers/home'));

describe('an answer about one person', () => {
  test('fails ten clients that are answered 400 at once, and the twenty behind them are next', async () => {
    const [bad, good] = [10, 20].map((count, at) => Array.from({ length: count }, (_, n) => `clients/${at}-${n}`));
    for (const path of bad ?? []) refuse('createClient', 400, { partnerUserId: path.slice('clients/'.length) });
    for (const path of [...(bad ?? []), ...(good ?? [])]) await begin(path);
    const before = world.now().getTime();
    await world.settle();
    expect(world.now().getTime() - before).toBeLessThan(20_000); // no call waits for a pause
    expect(new Set((await verdicts(bad ?? [])).map(String))).toEqual(new Set([String(REJECTED)]));
    expect(new Set((await verdicts(good ?? [])).map(String))).toEqual(new Set([String(SYNCED)]));
    expect(world.platform.arrivals('createClient')).toBe(30);
    expect((await get('clients/0-0')).sync.error?.platformMessage).toContain('Injected status 400');
  });

  test('with 404 for the clients of one provider fails them, and the clients of others are created', async () => {
    const { platformUserId } = await put('providers/broken');
    await put('clients/proof');
    refuse('createClient', 404, { therapistUserId: platformUserId ?? '' });
    const broken = ['clients/b-1', 'clients/b-2', 'clients/b-3'];
    for (const path of broken) await begin(path, { providers: ['broken'] });
    const others = ['clients/o-1', 'clients/o-2'];
    for (const path of others) await begin(path);
    await world.settle();
    expect(await verdicts(broken)).toEqual(broken.map(() => REJECTED));
    expect(await verdicts(others)).toEqual(others.map(() => SYNCED));
    expect(world.platform.arrivals('createClient')).toBe(1 + 3 + 2);
  });

  test('is asked for once more after an hour, and the person then stays failed until someone changes it', async () => {
    refuse('createProvider', 422, { partnerUserId: 'bad' });
    expect(verdictOf(await put('providers/bad'))).toEqual(REJECTED);
    expect(await callsDuring(() => later('2 min'))).toEqual([]);
    expect(await callsDuring(() => later('61 min'))).toEqual(['checkUser', 'createProvider']);
    expect(await verdict('providers/bad')).toEqual(REJECTED);
    expect(await callsDuring(() => later('3 d'))).toEqual([]);
    expect((await settled('providers/bad')).sync.error?.platformMessage).toContain('Injected status 422');

    world.platform.release();
    await resolve('providers/bad', { action: 'retry' });
    expect(verdictOf(await settled('providers/bad'))).toEqual(SYNCED);
  });

  test('is announced once, although it is asked for twice', async () => {
    refuse('createProvider', 400, { partnerUserId: 'bad' });
    await put('providers/bad');
    await later('61 min');
    const { items } = (await world.call<FeedPageResponse>('GET', '/v1/events?limit=200')).body;
    const failed = items.filter(({ type }) => type === 'person.failed');
    expect(failed).toMatchObject([{ subject: 'providers/bad', data: { code: 'rejected' } }]);
  });

  test('that changes after an hour mirrors the person', async () => {
    refuse('createProvider', 400, { partnerUserId: 'late' });
    await put('providers/late');
    world.platform.release();
    await later('61 min');
    expect(await verdict('providers/late')).toEqual(SYNCED);
  });

  test('does not fail a person that the EHR has corrected meanwhile', async () => {
    await begin('providers/torn');
    refuse('createProvider', 400, { lastName: 'Ruiz' });
    const held = await world.untilHeld({ operation: 'checkUser' });
    await begin('providers/torn', { lastName: 'Right' });
    await held.answer();
    expect(await verdict('providers/torn')).toEqual(SYNCED);
  });

  test('is a cause once twenty people in a row got one, until one succeeds', async () => {
    const refusing = async () => (await health('platform'))?.reason ?? '';
    refuse('createProvider', 400);
    for (let n = 1; n < 20; n += 1) await begin(`providers/r-${n}`);
    await world.settle();
    expect(await refusing()).toBe('');
    await put('providers/r-20');
    expect(await refusing()).toContain('refuses an operation twenty times in a row: createProvider');
    world.platform.release();
    await put('providers/well');
    expect(await refusing()).toBe('');
  });
});

describe('a 404 of a deletion', () => {
  test('counts as deleted if another call has just succeeded at the address', async () => {
    await put('clients/gone');
    vanish('gone');
    expect(await callsDuring(() => remove('clients/gone'))).toEqual(['deleteUser']);
    expect(await verdict('clients/gone')).toEqual(['deleted', null]);
  });

  test('is preceded by a check if nothing has succeeded within a minute, and ends', async () => {
    await put('clients/gone');
    vanish('gone');
    await world.advance('2 min');
    expect(await callsDuring(() => remove('clients/gone'))).toEqual(['deleteUser', 'checkUser', 'deleteUser']);
    expect(await verdict('clients/gone')).toEqual(['deleted', null]);
  });

  describe('at a path of the contract file that never succeeded', () => {
    beforeEach(async () => {
      await put('clients/gone');
      await world.restart({
        PLATFORM_CONTRACT: contractFile([], { deleteUser: { path: '/users/{userId}/account' } }),
      });
      await remove('clients/gone');
    });

    test('asks an operator, who can say that it is deleted; others go on', async () => {
      expect(await verdict('clients/gone')).toEqual(['needs-review', 'delete-unconfirmed']);
      expect(verdictOf(await put('clients/other'))).toEqual(SYNCED);
      expect(await callsDuring(() => later('3 d'))).toEqual([]);
      expect((await resolve('clients/gone', { action: 'create' })).status).toBe(409);
      expect((await resolve('clients/gone', { action: 'deleted' })).status).toBe(200);
      expect(await callsDuring(() => world.settle())).toEqual([]);
      expect(await verdict('clients/gone')).toEqual(['deleted', null]);
    });

    test('is repeated once the path is corrected', async () => {
      await world.restart();
      await resolve('clients/gone', { action: 'retry' });
      expect(verdictOf(await settled('clients/gone'))).toEqual(['deleted', null]);
      expect(usersOf('gone')).toEqual([]);
    });

    test('does not stop a client that is wanted again', async () => {
      await begin('clients/gone');
      expect(verdictOf(await settled('clients/gone'))).toEqual(SYNCED);
      await world.restart();
      expect(verdictOf(await remove('clients/gone'))).toEqual(['deleted', null]);
    });
  });
});

test('a 404 of a list says that the client’s user is missing, and a create makes it again', async () => {
  await put('providers/second');
  const { platformUserId: user } = await put('clients/missing');
  vanish('missing');
  expect(verdictOf(await put('clients/missing', { providers: ['second'] }))).toEqual([
    'needs-review',
    'platform-user-missing',
  ]);
  await resolve('clients/missing', { action: 'create' });
  expect(verdictOf(await settled('clients/missing'))).toEqual(SYNCED);
  expect(usersOf('missing')).toHaveLength(1);
  // Sessions still name the lost user.
  const former = await world.call<PlatformUserResponse>('GET', `/v1/people/platform-users/${user}`);
  expect(former.body).toMatchObject({ deleted: true, formerPerson: { kind: 'client', externalId: 'missing' } });
});

test('a link to another user keeps the missing one with its person, too', async () => {
  await put('providers/second');
  const { platformUserId: user } = await put('clients/missing');
  vanish('missing');
  await put('clients/missing', { providers: ['second'] });
  const { users } = world.platform.simulator.state;
  const names = { firstName: 'M', lastName: 'M', providerUserIds: [] };
  await resolve('clients/missing', { action: 'link', platformUserId: users.add({ role: 'Client', ...names }).userId });
  expect(verdictOf(await settled('clients/missing'))).toEqual(SYNCED);
  const former = await world.call<PlatformUserResponse>('GET', `/v1/people/platform-users/${user}`);
  expect(former.body).toMatchObject({ deleted: true, formerPerson: { kind: 'client', externalId: 'missing' } });
});

test('a deletion that is refused is tried once more, and is over when the user is gone', async () => {
  await put('clients/kept');
  refuse('deleteUser', 409);
  await beginRemoval('clients/kept');
  expect(verdictOf(await settled('clients/kept'))).toEqual(REJECTED);
  await later('61 min');
  expect(await verdict('clients/kept')).toEqual(REJECTED);
  world.platform.release();
  await resolve('clients/kept', { action: 'retry' });
  expect([verdictOf(await settled('clients/kept')), usersOf('kept')]).toEqual([['deleted', null], []]);
});
