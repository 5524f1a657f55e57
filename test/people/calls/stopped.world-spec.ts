import type { TraceResponse } from '../../../src/people/api/trace.dto.js';
import { PeopleCalls } from '../../../src/people/people-calls.service.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { begin, beginRemoval, put, remove, resolve, settled, verdict, verdicts, callsDuring, health } = peopleOf(world);

const SYNCED = ['synced', null];
const usersOf = (externalId: string) => world.platform.usersOf(externalId);
const creates = (operation = 'createProvider') => world.platform.arrivals(operation);
const passing = async (span: '6 s' | '16 s' | '2 min' | '10 min' | '61 min') => {
  await world.advance(span);
  await world.settle();
};
const many = (count: number, kind = 'providers') => Array.from({ length: count }, (_, n) => `${kind}/m-${n}`);

describe('a wrong base URL', () => {
  test.each(['message', 'page'] as const)('(404 with a %s) fails and deletes no person', async (unknownPaths) => {
    world.platform.set({ unknownPaths });
    for (const path of ['providers/home', 'providers/p2', 'clients/gone', 'clients/moved']) await put(path);
    await world.restart({ PLATFORM_BASE_URL: `${world.platform.url}/v9` });
    await begin('providers/new');
    await beginRemoval('clients/gone');
    await put('clients/moved', { providers: ['p2'] });
    const changed = ['providers/new', 'clients/gone', 'clients/moved'];
    await passing('10 min');
    expect((await verdicts(changed)).map(([state]) => state)).toEqual(['pending', 'deleting', 'pending']);
    expect(usersOf('gone')).toHaveLength(1);
    expect((await health('platform'))?.reason).toContain('These calls reach another server than the platform');

    await world.restart();
    await passing('61 min');
    expect(await verdicts(changed)).toEqual([SYNCED, ['deleted', null], SYNCED]);
    expect(usersOf('gone')).toEqual([]);
    expect((await health('platform'))?.status).toBe('ok');
  });
});

describe('a 403', () => {
  const forbid = (operation: string, match: Record<string, string> = {}) =>
    world.platform.injectFault({ operation, kind: 'forbid', count: null, match });

  test('pauses its operation for 5 s, except for one probe each time, and others go on', async () => {
    const paths = ['providers/k-1', 'providers/k-2', 'providers/k-3', 'providers/k-4'];
    forbid('createProvider');
    for (const path of paths) await put(path);
    const known = { email: 'k-known@example.org', firstName: 'Pia', lastName: 'Ruiz' };
    world.platform.simulator.state.users.add({ role: 'HealthcareProvider', ...known, providerUserIds: [] });
    expect((await put('providers/k-known')).sync.state).toBe('synced');
    expect(creates()).toBe(1);
    expect(await verdict('providers/k-1')).toEqual(['pending', 'platform-unauthorized']);
    const body = { kind: 'provider', externalId: 'k-4' };
    const { nextStep } = (await world.call<TraceResponse>('POST', '/v1/people/trace', { body })).body;
    expect(nextStep).toMatchObject({
      what: 'createProvider',
      why: expect.stringContaining('Calls pause for everyone'),
    });
    expect((await health('platform'))?.reason).toMatch(
      /rejects PLATFORM_API_KEY: createProvider \(403, next probe at 2/,
    );

    // A probe goes to someone who was not refused yet, and no longer pause follows.
    for (const probes of [2, 3, 4]) {
      await passing('6 s');
      expect(creates()).toBe(probes);
    }
    world.platform.release();
    await passing('2 min');
    expect(await verdicts(paths)).toEqual(paths.map(() => SYNCED));
    for (const path of paths) expect(usersOf(path.slice('providers/'.length))).toHaveLength(1);
    expect((await health('platform'))?.status).toBe('ok');
  });

  test('that a person gets again, although others succeeded since, is about this person', async () => {
    for (const partnerUserId of ['own-1', 'own-2']) forbid('createProvider', { partnerUserId });
    const refused = ['providers/own-1', 'providers/own-2'];
    for (const path of refused) await put(path);
    const others = many(3);
    for (const path of others) await begin(path);
    for (let times = 0; times < 4; times += 1) await passing('16 s');
    expect(await verdicts(others)).toEqual(others.map(() => SYNCED));
    expect(await verdicts(refused)).toEqual(refused.map(() => ['failed', 'forbidden']));
    expect((await health('platform'))?.status).toBe('ok');

    const calls = creates();
    await passing('61 min');
    expect([creates(), await verdicts(refused)]).toEqual([calls + 2, refused.map(() => ['failed', 'forbidden'])]);
    world.platform.release();
    await resolve('providers/own-1', { action: 'retry' });
    expect((await settled('providers/own-1')).sync.state).toBe('synced');
  });

  test('to deletions pauses only deletions', async () => {
    await put('providers/home');
    for (const path of ['clients/gone', 'clients/kept']) await put(path);
    forbid('deleteUser');
    await remove('clients/gone');
    await remove('clients/kept');
    expect((await put('providers/new')).sync.state).toBe('synced');
    expect((await put('clients/new')).sync.state).toBe('synced');
    expect(creates('deleteUser')).toBe(1);
    expect((await health('platform'))?.reason).toMatch(/rejects PLATFORM_API_KEY: deleteUser \(403/);
    world.platform.release();
    await passing('2 min');
    expect(await verdicts(['clients/gone', 'clients/kept'])).toEqual(Array(2).fill(['deleted', null]));
  });

  test('pauses also after a restart, and a success that began before it does not end the pause', async () => {
    await begin('providers/old');
    const held = await world.untilHeld({ operation: 'createProvider' });
    forbid('createProvider');
    await begin('providers/new');
    await world.work.people();
    expect(creates()).toBe(2);
    world.platform.simulator.state.timers.cancelAll();
    await held.ended;
    expect(await verdict('providers/old')).toEqual(SYNCED);
    await begin('providers/next');
    await world.restart();
    await world.settle();
    expect(creates()).toBe(2);
    await passing('6 s');
    expect(creates()).toBe(3);
  });
});

test('a 405 and a 404 that one person gets again while others are created fail that person', async () => {
  const refused = ['providers/own-404', 'providers/own-405'];
  for (const status of [404, 405]) {
    const match = { partnerUserId: `own-${status}` };
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status, count: null, match });
  }
  for (const path of refused) await put(path);
  for (const path of many(2)) await put(path);
  for (let times = 0; times < 6; times += 1) await passing('16 s');
  expect(await verdicts([...many(2), ...refused])).toEqual([
    ...Array(2).fill(SYNCED),
    ...Array(2).fill(['failed', 'rejected']),
  ]);
});

describe('a 401', () => {
  const WORK = ['providers/a', 'providers/b', 'clients/c', 'clients/gone', 'clients/moved'];
  beforeEach(async () => {
    for (const path of ['providers/home', 'providers/p2', 'clients/gone', 'clients/moved']) await put(path);
    world.platform.injectFault({ kind: 'status', status: 401, count: null });
    for (const path of WORK.slice(0, 3)) await begin(path);
    await beginRemoval('clients/gone');
    await begin('clients/moved', { providers: ['p2'] });
  });

  test('pauses all calls, and only checks probe it, one at a time', async () => {
    await world.settle();
    expect((await health('platform'))?.reason).toMatch(
      /rejects PLATFORM_API_KEY: user management \(401, next probe at 2/,
    );
    // 5, 10, 20, then always 30 s.
    for (const [span, probes] of [
      ['4 s', 0],
      ['2 s', 1],
      ['8 s', 0],
      ['3 s', 1],
      ['18 s', 0],
      ['3 s', 1],
      ['31 s', 1],
      ['31 s', 1],
    ] as const) {
      const calls = await callsDuring(async () => {
        await world.advance(span);
        await world.settle();
      });
      expect([span, calls]).toEqual([span, Array(probes).fill('checkUser')]);
    }
    world.platform.release();
    await passing('61 min');
    expect(await verdicts(WORK)).toEqual([SYNCED, SYNCED, SYNCED, ['deleted', null], SYNCED]);
    expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  });

  test('ends although the provider whose email is looked up cannot be decrypted', async () => {
    await world.settle();
    await world.sql(`UPDATE people SET profile = 'x' WHERE kind = 'provider'`);
    world.platform.release();
    await passing('61 min');
    expect(await verdicts(['clients/c', 'clients/gone', 'clients/moved'])).toEqual([SYNCED, ['deleted', null], SYNCED]);
  });

  test('pauses also after a restart', async () => {
    await world.settle();
    await world.restart();
    expect(await callsDuring(() => world.settle())).toEqual([]);
  });
});

describe('a hold that begins between the decision about a probe and its call', () => {
  test.each([
    ['createProvider', 403],
    ['*', 401],
  ] as const)('leaves nothing paused after the release (%s answered %d)', async (operation, status) => {
    world.platform.injectFault({ operation, kind: 'status', status, count: null });
    for (const path of many(3)) await put(path);
    world.platform.release();
    const calls = world.get(PeopleCalls);
    const perform = calls.perform.bind(calls);
    const hold = (held: boolean) => world.call('PUT', '/v1/sending', { body: { held, reason: 'CASE-1' } });
    const holding = jest.spyOn(calls, 'perform').mockImplementation(async (...call) => {
      holding.mockImplementation(perform);
      await hold(true);
      return perform(...call);
    });
    await passing('61 min');
    expect(holding).toHaveBeenCalled();
    expect(creates()).toBe(operation === '*' ? 0 : 1);
    await world.restart();
    await hold(false);
    await passing('2 min');
    expect(await verdicts(many(3))).toEqual(many(3).map(() => SYNCED));
    expect((await health('platform'))?.status).toBe('ok');
  });
});
