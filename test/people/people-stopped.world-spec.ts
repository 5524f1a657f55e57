import type { FeedPageResponse } from '../../src/feed/feed.dto.js';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import { Reconciler } from '../../src/people/reconcile/reconciler.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { begin, beginRemoval, put, remove, get, resolve, settled, verdict, verdicts, callsDuring, health } =
  peopleOf(world);

const usersOf = (externalId: string) => world.platform.usersOf(externalId);
const creates = (operation = 'createProvider') => world.platform.arrivals(operation);
const passing = async (span: '7 s' | '20 s' | '2 min' | '10 min' | '2 h') => {
  await world.advance(span);
  await world.settle();
};
/** The time of the first probe after an operation was stopped. */
const FIRST_PROBE = '7 s';

/** Makes a delete and a list succeed, because their 404 is believed only at a URL where they have succeeded. */
async function proveUrls(): Promise<void> {
  for (const path of ['providers/one', 'providers/two', 'clients/proof'])
    await put(path, path.startsWith('c') ? { providers: ['one'] } : {});
  await put('clients/proof', { providers: ['two'] });
  await remove('clients/proof');
}

describe('a wrong base URL', () => {
  test.each(['message', 'page'] as const)('(404 with a %s) fails and deletes no person', async (unknownPaths) => {
    world.platform.set({ unknownPaths });
    for (const path of ['providers/home', 'providers/p2', 'clients/gone', 'clients/moved']) {
      expect((await put(path)).sync.state).toBe('synced');
    }
    await proveUrls();
    await world.restart({ PLATFORM_BASE_URL: `${world.platform.url}/v9` });
    await begin('providers/new');
    await beginRemoval('clients/gone');
    await put('clients/moved', { providers: ['p2'] });
    const changed = ['providers/new', 'clients/gone', 'clients/moved'];
    expect(await verdicts(changed)).toEqual([
      ['pending', 'platform-address'],
      ['deleting', 'platform-address'],
      ['pending', 'platform-address'],
    ]);
    expect(usersOf('gone')).toHaveLength(1);
    expect(await health('people')).toMatchObject({
      status: 'degraded',
      reason: expect.stringContaining('Check PLATFORM_BASE_URL'),
    });

    await world.restart();
    await passing('10 min');
    expect(await verdicts(changed)).toEqual([
      ['synced', null],
      ['deleted', null],
      ['synced', null],
    ]);
    expect(usersOf('gone')).toEqual([]);
  });

  test.each([404, 405])('is not the cause of a %d to one person while others are created', async (status) => {
    world.platform.injectFault({
      operation: 'createProvider',
      kind: 'status',
      status,
      count: null,
      match: { partnerUserId: 'own' },
    });
    await put('providers/own');
    expect(await verdict('providers/own')).toEqual(['pending', 'platform-address']);
    await put('providers/other');
    for (const _time of ['first', 'second']) {
      await passing('10 min');
      expect(await verdicts(['providers/other', 'providers/own'])).toEqual([
        ['synced', null],
        ['pending', 'platform-address'],
      ]);
      expect((await health('people'))?.status).toBe('ok');
    }
    world.platform.release();
    await passing('2 h');
    expect(await verdict('providers/own')).toEqual(['synced', null]);
  });
});

describe('a 403', () => {
  test('stops its operation except for single probes, until one succeeds', async () => {
    const paths = ['providers/k-1', 'providers/k-2', 'providers/k-3', 'providers/k-4'];
    world.platform.injectFault({ operation: 'createProvider', kind: 'forbid', count: null });
    for (const path of paths) await put(path);
    const known = { email: 'k-known@example.org', firstName: 'Pia', lastName: 'Ruiz' };
    world.platform.simulator.state.users.add({ role: 'HealthcareProvider', ...known, providerUserIds: [] });
    expect((await put('providers/k-known')).sync.state).toBe('synced');
    expect(creates()).toBe(1);
    expect((await get('providers/k-1')).sync).toMatchObject({
      step: 'createProvider',
      error: { code: 'platform-unauthorized' },
    });
    expect((await get('providers/k-4')).sync.state).toBe('pending');
    const trace = await world.call<TraceResponse>('POST', '/v1/people/trace', {
      body: { kind: 'provider', externalId: 'k-4' },
    });
    expect(trace.body.nextStep).toEqual({
      what: 'createProvider',
      why: expect.stringMatching(/rejects PLATFORM_API_KEY: createProvider \(next probe at 2/),
      notBefore: expect.any(String),
    });
    expect((await health('people'))?.status).toBe('degraded');

    await passing(FIRST_PROBE);
    expect(creates()).toBe(2);
    // The wait before the next probe is twice as long, a quarter more or less.
    await passing(FIRST_PROBE);
    expect(creates()).toBe(2);

    world.platform.release();
    await passing('10 min');
    expect(await verdicts(paths)).toEqual(paths.map(() => ['synced', null]));
    for (const path of paths) expect(usersOf(path.slice('providers/'.length))).toHaveLength(1);
    expect((await health('people'))?.status).toBe('ok');
  });

  test('fails only the two people it affects, because probes go to other people', async () => {
    const refused = ['providers/own-1', 'providers/own-2'];
    for (const partnerUserId of ['own-1', 'own-2']) {
      world.platform.injectFault({
        operation: 'createProvider',
        kind: 'forbid',
        count: null,
        match: { partnerUserId },
      });
    }
    for (const path of refused) await put(path);
    await passing(FIRST_PROBE);
    expect(creates()).toBe(2);
    const others = ['providers/other-1', 'providers/other-2', 'providers/other-3'];
    for (const path of others) await put(path);
    expect(creates()).toBe(2);
    // One probe is enough, because it goes to a person that was never refused.
    await world.advance('2 min');
    await world.settle();
    expect(creates()).toBe(2 + others.length + refused.length);
    for (const path of others) expect(await verdict(path)).toEqual(['synced', null]);
    for (const path of refused) expect(await verdict(path)).toEqual(['failed', 'forbidden']);
    expect((await health('people'))?.status).toBe('ok');

    world.platform.release();
    await resolve('providers/own-1', { action: 'retry' });
    await world.settle();
    expect(await verdict('providers/own-1')).toEqual(['synced', null]);
  });
});

test('a 403 to deletes stops only deletes', async () => {
  await put('providers/home');
  for (const path of ['clients/gone', 'clients/kept']) await put(path);
  world.platform.injectFault({ operation: 'deleteUser', kind: 'forbid', count: null });
  await remove('clients/gone');
  await remove('clients/kept');
  expect((await put('providers/new')).sync.state).toBe('synced');
  expect((await put('clients/new')).sync.state).toBe('synced');
  expect(creates('deleteUser')).toBe(1);
  expect(await verdicts(['clients/gone', 'clients/kept'])).toEqual([
    ['deleting', 'platform-unauthorized'],
    ['deleting', 'platform-unauthorized'],
  ]);
  expect(await health('people')).toMatchObject({
    reason: expect.stringMatching(/rejects PLATFORM_API_KEY: deleteUser \(next probe at 2/),
  });
  world.platform.release();
  await passing('10 min');
  expect(await verdicts(['clients/gone', 'clients/kept'])).toEqual(Array(2).fill(['deleted', null]));
});

test('a 429 to creates of clients delays everything else by at most a minute', async () => {
  for (const path of ['providers/home', 'providers/p2', 'clients/moved']) await put(path);
  world.platform.injectFault({ operation: 'createClient', kind: 'rate-limit', retryAfterSeconds: 3_000, count: null });
  await put('clients/new');
  expect(await verdict('clients/new')).toEqual(['pending', 'rate-limited']);
  await begin('providers/next');
  await begin('clients/moved', { providers: ['p2'] });
  await world.advance('61 s');
  await world.settle();
  expect(await verdicts(['providers/next', 'clients/moved'])).toEqual(Array(2).fill(['synced', null]));
  expect(creates('createClient')).toBe(2);
  await passing('2 h');
  expect(await verdict('clients/new')).toEqual(['pending', 'rate-limited']);
  world.platform.release();
  await passing('2 h');
  expect(await verdict('clients/new')).toEqual(['synced', null]);
});

describe('a 4xx', () => {
  const refuse = (rule: { status: number; match?: Record<string, string> }) =>
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', count: null, ...rule });
  const failedEvents = async () =>
    (await world.call<FeedPageResponse>('GET', '/v1/events?limit=200')).body.items.filter(
      ({ type }) => type === 'person.failed',
    );

  test.each([400, 402, 410, 451])('fails no one permanently if everyone gets a %d', async (status) => {
    refuse({ status });
    const paths = Array.from({ length: 8 }, (_, n) => `providers/p-${n}`);
    for (const path of paths) await begin(path);
    await world.settle();
    expect(creates()).toBe(3);
    const seen = await verdicts(paths);
    expect(seen.filter(([state, code]) => state === 'failed' && code === 'rejected')).toHaveLength(3);
    expect(seen.filter(([state]) => state === 'pending')).toHaveLength(5);
    expect((await health('people'))?.reason).toContain(`createProvider (${status}, next probe at `);
    await passing('2 h');

    world.platform.release();
    await passing('2 min');
    expect(await verdicts(paths)).toEqual(paths.map(() => ['synced', null]));
    expect(await failedEvents()).toEqual([]);
    expect((await health('people'))?.status).toBe('ok');
  });

  test('fails one person with the platform’s message, and is published once it is final', async () => {
    refuse({ status: 400, match: { partnerUserId: 'bad' } });
    const bad = await put('providers/bad');
    expect(bad.sync).toMatchObject({ state: 'failed', error: { code: 'rejected' } });
    expect(bad.sync.error?.platformMessage).toContain('Injected status');
    for (const path of ['providers/a', 'providers/b']) expect((await put(path)).sync.state).toBe('synced');
    expect(await failedEvents()).toEqual([]);
    await passing('2 min');
    expect(await failedEvents()).toMatchObject([{ subject: 'providers/bad', data: { code: 'rejected' } }]);
    const calls = creates();
    await passing('2 h');
    expect(creates()).toBe(calls);
    expect((await settled('providers/bad')).sync.error?.platformMessage).toContain('Injected status');
  });

  test('is retried for a day if only one person gets it', async () => {
    refuse({ status: 400 });
    await put('providers/alone');
    world.platform.release();
    await passing('2 min');
    expect(await verdict('providers/alone')).toEqual(['synced', null]);
  });
});

describe('a 404 of a delete', () => {
  const vanish = (id: string) => {
    const [user] = usersOf(id);
    if (user) world.platform.simulator.state.users.remove(user);
  };
  beforeEach(async () => {
    for (const path of ['providers/home', 'clients/gone']) await put(path);
  });

  test('opens the breaker as wrong URL if no delete ever succeeded there', async () => {
    vanish('gone');
    await remove('clients/gone');
    expect(await verdict('clients/gone')).toEqual(['deleting', 'platform-address']);
  });

  test('is preceded by a check if nothing else succeeded within a minute', async () => {
    await proveUrls();
    vanish('gone');
    await world.advance('2 min');
    expect(await callsDuring(() => remove('clients/gone'))).toEqual(['deleteUser', 'checkUser', 'deleteUser']);
    expect(await verdict('clients/gone')).toEqual(['deleted', null]);
  });
});

describe('without answers', () => {
  const lose = (rule: { operation: string; match?: Record<string, string> }) =>
    world.platform.injectFault({ kind: 'status', status: 503, count: null, ...rule });
  const waiting = ['clients/waits-1', 'clients/waits-2', 'clients/waits-3', 'clients/waits-4'];

  /** Loses the creates of three clients without an email, then adds more of them, which wait. */
  async function loseThree(): Promise<void> {
    for (const path of ['clients/lost-1', 'clients/lost-2', 'clients/lost-3']) {
      expect((await put(path)).sync).toMatchObject({ state: 'needs-review', error: { code: 'create-unknown' } });
    }
    for (const path of waiting) await put(path);
    expect(creates('createClient')).toBe(3);
    expect(new Set((await verdicts(waiting)).map(([state]) => state))).toEqual(new Set(['pending']));
  }

  async function mirrorAll(): Promise<void> {
    world.platform.release();
    await passing('10 min');
    for (const path of waiting) expect(await verdict(path)).toEqual(['synced', null]);
    expect(creates('createClient')).toBe(3 + waiting.length);
  }

  beforeEach(() => put('providers/home'));

  test('checks an email first, as a probe of creates without an email', async () => {
    lose({ operation: '*' });
    const checks = creates('checkUser');
    await loseThree();
    await passing('2 min');
    expect(creates('createClient')).toBe(3);
    expect(creates('checkUser')).toBeGreaterThan(checks);
    await mirrorAll();
  });

  test('leaves at most three clients without an email to an operator after an hour', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `b-${n}`);
    const rows = ids.map((id) => `${id},Noor,Haddad,home`);
    const body = Buffer.from(['externalId,firstName,lastName,providers', ...rows].join('\n'));
    lose({ operation: '*' });
    await world.call('POST', '/v1/imports?kind=clients', { body, headers: { 'content-type': 'text/csv' } });
    await world.settle();
    for (let minutes = 0; minutes < 60; minutes += 10) await passing('10 min');
    expect(creates('createClient')).toBeLessThanOrEqual(3);
    world.platform.release();
    for (const _wait of [1, 2]) await passing('10 min');
    const states = await verdicts(ids.map((id) => `clients/${id}`));
    expect(states.filter(([state]) => state === 'needs-review').length).toBeLessThanOrEqual(3);
    expect(states.filter(([state]) => state === 'synced').length).toBeGreaterThanOrEqual(37);
  });

  test('at most three creates of clients without an email are in flight', async () => {
    world.platform.hold({ operation: 'createClient', count: null });
    for (const path of waiting) await begin(path);
    const reconciler = world.get(Reconciler);
    const calls: Promise<unknown>[] = [];
    for (const inFlight of [1, 2, 3]) {
      await world.advance('1 ms');
      calls.push(reconciler.reconcileNext());
      await world.eventually('the create arrives', () => creates('createClient') === inFlight);
    }
    await world.advance('1 ms');
    expect(await reconciler.reconcileNext()).toBeUndefined();
    world.platform.release();
    await Promise.all(calls);
    await world.settle();
    for (const path of waiting) expect(await verdict(path)).toEqual(['synced', null]);
  });

  test('delays creates without an email until a probe is answered, if only creates fail', async () => {
    lose({ operation: 'createClient' });
    await loseThree();
    expect(await health('platform')).toMatchObject({
      status: 'degraded',
      reason: expect.stringContaining('no readable answer: createClient'),
    });
    await mirrorAll();
  });

  test('delays no one else if only one person’s creates fail', async () => {
    lose({ operation: 'createClient', match: { partnerUserId: 'poison' } });
    await begin('clients/poison', { email: 'poison@example.org' });
    for (const _lost of [1, 2, 3]) for (const _check of ['before', 'after']) await passing('2 min');
    expect(creates('createClient')).toBeGreaterThanOrEqual(3);
    expect((await health('people'))?.status).toBe('ok');
    expect((await put('clients/well')).sync.state).toBe('synced');
  });

  test('keeps a person pending for a day of creates, and continues automatically', async () => {
    lose({ operation: 'createProvider' });
    await begin('providers/never');
    for (let hours = 0; hours < 24; hours += 2) await passing('2 h');
    expect((await verdict('providers/never'))[0]).toBe('pending');
    expect(creates()).toBeGreaterThan(3);
    world.platform.release();
    for (const _step of ['lookup', 'create']) await passing('10 min');
    expect(await verdict('providers/never')).toEqual(['synced', null]);
  });

  test('retries a create after a 409 in 15 s, after a check that links an existing user', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 409 });
    expect(await callsDuring(() => put('providers/late'))).toEqual(['checkUser', 'createProvider']);
    expect(await verdict('providers/late')).toEqual(['failed', 'rejected']);
    expect(await callsDuring(() => passing('20 s'))).toEqual(['checkUser', 'createProvider']);
    expect(await verdict('providers/late')).toEqual(['synced', null]);
  });
});
