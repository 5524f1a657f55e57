import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { FaultKind } from '../simulator/gate/fault-rule.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import type { TraceResponse } from '../src/people/api/trace.dto.js';
import { type Mirror, useMirrors } from './support/service.js';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
  service = await mirror.start();
  await put('providers/home', { email: 'home@example.org' });
});

/** Puts a person and waits until it is settled or needs somebody. */
async function put(path: string, more: object = {}, wait = 60): Promise<PersonResponse> {
  const names = { firstName: 'Pia', lastName: 'Ruiz', ...(path.startsWith('clients') && { providers: ['home'] }) };
  return (await service.call('PUT', `/v1/${path}`, { body: { ...names, ...more }, wait })).body;
}
const get = async (path: string, wait = 0) => (await service.call('GET', `/v1/${path}`, { wait })).body;
const remove = async (path: string, wait = 60) => (await service.call('DELETE', `/v1/${path}`, { wait })).body;
const resolve = async (path: string, body: object, wait = 60) =>
  (await service.call('POST', `/v1/${path}/resolve`, { body, wait })).body;
const verdict = ({ sync }: PersonResponse) => [sync.state, sync.error?.code ?? null];

/** Operations that arrived while `work` was done. */
async function callsDuring(work: () => Promise<unknown>): Promise<string[]> {
  const before = mirror.arrivals();
  await work();
  return mirror.simulator.state.arrivals
    .list()
    .slice(before)
    .map(({ operation }) => operation);
}

describe('an answer that is lost', () => {
  test.each<FaultKind>(['commit-then-cut', 'commit-then-500', 'bad-json'])(
    'to a create with an email (%s) is looked up once after the grace, and nobody is made twice',
    async (kind) => {
      const externalId = `lost-${kind}`;
      mirror.trouble({ operation: 'createProvider', kind, match: { partnerUserId: externalId } });
      const calls = await callsDuring(async () => {
        const first = await put(`providers/${externalId}`, { email: `${externalId}@example.org` }, 0);
        expect(first.sync.state).toBe('pending');
        expect(verdict(await get(`providers/${externalId}`, 60))).toEqual(['synced', null]);
      });
      expect(calls).toEqual(['checkUser', 'createProvider', 'checkUser']);
      expect(mirror.usersOf(externalId)).toHaveLength(1);
    },
  );

  test('to a create that never was done is followed by a second create', async () => {
    mirror.trouble({
      operation: 'createProvider',
      kind: 'status',
      status: 503,
      match: { partnerUserId: 'never-done' },
    });
    const calls = await callsDuring(() => put('providers/never-done', { email: 'never-done@example.org' }));
    expect(calls).toEqual(['checkUser', 'createProvider', 'checkUser', 'createProvider']);
    expect(mirror.usersOf('never-done')).toHaveLength(1);
  });

  test('to a check is asked again', async () => {
    mirror.trouble({ operation: 'checkUser', kind: 'status', status: 500, match: { email: 'check@example.org' } });
    const calls = await callsDuring(async () =>
      expect(verdict(await put('providers/check', { email: 'check@example.org' }))).toEqual(['synced', null]),
    );
    expect(calls).toEqual(['checkUser', 'checkUser', 'createProvider']);
  });

  test.each<FaultKind>(['commit-then-cut', 'commit-then-500'])('to a list (%s) sends it again', async (kind) => {
    await put(`providers/second-${kind}`, { email: `second-${kind}@example.org` });
    await put(`clients/list-${kind}`);
    mirror.trouble({ operation: 'setClientProviders', kind, match: { partnerUserId: `list-${kind}` } });
    const { body } = await service.call('PUT', `/v1/clients/list-${kind}/providers`, {
      body: { providers: [`second-${kind}`] },
      wait: 60,
    });
    expect(verdict(body)).toEqual(['synced', null]);
    const { platformUserId } = await get(`providers/second-${kind}`);
    expect(mirror.usersOf(`list-${kind}`)).toMatchObject([{ providerUserIds: [platformUserId] }]);
  });

  test('to a delete is followed by another, whose 404 counts as done', async () => {
    await put('clients/cut-delete');
    mirror.trouble({ operation: 'deleteUser', kind: 'commit-then-cut', match: { partnerUserId: 'cut-delete' } });
    const calls = await callsDuring(async () =>
      expect(verdict(await remove('clients/cut-delete'))).toEqual(['deleted', null]),
    );
    expect(calls).toEqual(['deleteUser', 'deleteUser']);
  });
});

test('a deletion without an answer is no creation without one, to whoever traces it', async () => {
  await put('clients/traced-delete');
  mirror.trouble({ operation: 'deleteUser', kind: 'commit-then-cut', match: { partnerUserId: 'traced-delete' } });
  await remove('clients/traced-delete', 0);
  const who = { kind: 'client', externalId: 'traced-delete' };
  const trace = await until('it got no answer', async () => {
    const { body } = await service.call<TraceResponse>('POST', '/v1/people/trace', { body: who });
    return body.history[0]?.outcome === 'unknown-outcome' || body.history[0]?.status === 404 ? body : undefined;
  });
  expect(trace.known.unsettledCreate).toBeNull();
  // Its second call would be one of those that the next case counts.
  await until('it is deleted', async () => (await get('clients/traced-delete', 60)).sync.state === 'deleted');
});

describe('a client without an email whose create got no answer', () => {
  async function unknown(externalId: string): Promise<string> {
    mirror.trouble({ operation: 'createClient', kind: 'commit-then-cut', match: { partnerUserId: externalId } });
    expect(verdict(await put(`clients/${externalId}`))).toEqual(['needs-review', 'create-unknown']);
    return mirror.usersOf(externalId)[0]?.userId ?? '';
  }

  test('is left for review, and never created again by itself', async () => {
    const calls = await callsDuring(() => unknown('u-review'));
    expect(calls).toEqual(['createClient']);
    expect(await callsDuring(() => put('clients/u-review'))).toEqual([]);
    expect(verdict(await get('clients/u-review'))).toEqual(['needs-review', 'create-unknown']);
  });

  test('is linked by a human being’s word', async () => {
    const userId = await unknown('u-link');
    const linked = await resolve('clients/u-link', { action: 'link', platformUserId: userId });
    expect([linked.sync.state, linked.platformUserId]).toEqual(['synced', userId]);
    expect(mirror.usersOf('u-link')).toHaveLength(1);
  });

  test('is not linked to the user of somebody else', async () => {
    const userId = await unknown('u-taken');
    const { platformUserId } = await put('clients/u-owner');
    const body = { action: 'link', platformUserId };
    expect((await service.call('POST', '/v1/clients/u-taken/resolve', { body })).status).toBe(409);
    await resolve('clients/u-taken', { action: 'link', platformUserId: userId });
  });

  test('is created once more when a human being says that it was not', async () => {
    const userId = await unknown('u-create');
    const user = mirror.simulator.state.users.find(userId);
    if (user) mirror.simulator.state.users.remove(user);
    expect(verdict(await resolve('clients/u-create', { action: 'create' }))).toEqual(['synced', null]);
    expect(mirror.usersOf('u-create')).toHaveLength(1);
  });

  test('stays in review on retry, since nothing new is known', async () => {
    await unknown('u-retry');
    expect(await callsDuring(() => resolve('clients/u-retry', { action: 'retry' }))).toEqual([]);
    expect(verdict(await get('clients/u-retry'))).toEqual(['needs-review', 'create-unknown']);
  });

  test('is left out on ignore, until it is PUT again', async () => {
    const userId = await unknown('u-ignore');
    expect(verdict(await resolve('clients/u-ignore', { action: 'ignore' }))).toEqual(['failed', 'ignored']);
    expect(verdict(await put('clients/u-ignore'))).toEqual(['needs-review', 'create-unknown']);
    await resolve('clients/u-ignore', { action: 'link', platformUserId: userId });
  });

  test('shows nothing of what was resolved once its next call is under way', async () => {
    const userId = await unknown('u-over');
    await resolve('clients/u-over', { action: 'ignore' });
    expect(verdict(await resolve('clients/u-over', { action: 'link', platformUserId: userId }, 0))).toEqual([
      'pending',
      null,
    ]);
  });

  test('and who is deleted meanwhile is delete-unknown; a link deletes it, ignore lets it be', async () => {
    const userId = await unknown('u-delete');
    expect(verdict(await remove('clients/u-delete'))).toEqual(['needs-review', 'delete-unknown']);
    expect(verdict(await resolve('clients/u-delete', { action: 'link', platformUserId: userId }))).toEqual([
      'deleted',
      null,
    ]);
    expect(mirror.usersOf('u-delete')).toEqual([]);

    await unknown('u-forget');
    await remove('clients/u-forget');
    const calls = await callsDuring(async () =>
      expect(verdict(await resolve('clients/u-forget', { action: 'ignore' }))).toEqual(['deleted', null]),
    );
    expect(calls).toEqual([]);
  });
});

describe('one email for two people', () => {
  test('is the first one’s; the other is email-taken without a call, whatever the spelling and kind', async () => {
    await put('providers/e-first', { email: 'shared@example.org' });
    const calls = await callsDuring(async () => {
      expect(verdict(await put('providers/e-second', { email: 'Shared@Example.ORG' }))).toEqual([
        'needs-review',
        'email-taken',
      ]);
      expect(verdict(await put('clients/e-third', { email: ' shared@example.org ' }))).toEqual([
        'needs-review',
        'email-taken',
      ]);
    });
    expect(calls).toEqual([]);
  });

  test('becomes the other’s when its holder is deleted', async () => {
    await put('clients/h-1', { email: 'heir@example.org' });
    await put('clients/h-2', { email: 'heir@example.org' });
    await remove('clients/h-1');
    await until('the other is synced', async () => (await get('clients/h-2', 60)).sync.state === 'synced');
    expect(mirror.usersOf('h-2')).toHaveLength(1);
  });

  test('becomes the other’s when its holder, not mirrored yet, takes another email', async () => {
    mirror.trouble({
      operation: 'checkUser',
      kind: 'status',
      status: 503,
      count: null,
      match: { email: 'swap@example.org' },
    });
    await put('clients/s-1', { email: 'swap@example.org' }, 0);
    expect(verdict(await put('clients/s-2', { email: 'swap@example.org' }))).toEqual(['needs-review', 'email-taken']);
    expect(verdict(await put('clients/s-1', { email: 'swap-other@example.org' }))).toEqual(['synced', null]);
    mirror.release();
    expect(verdict(await get('clients/s-2', 60))).toEqual(['synced', null]);
    expect(mirror.usersOf('s-1')).toMatchObject([{ email: 'swap-other@example.org' }]);
    expect(mirror.usersOf('s-2')).toMatchObject([{ email: 'swap@example.org' }]);
  });

  test('is no hindrance any more once the other one gets an email of its own', async () => {
    await put('clients/o-1', { email: 'own@example.org' });
    await put('clients/o-2', { email: 'own@example.org' });
    expect(verdict(await put('clients/o-2', { email: 'own-2@example.org' }))).toEqual(['synced', null]);
  });

  test('whose other person is deleted needs no call', async () => {
    await put('clients/d-1', { email: 'drop@example.org' });
    await put('clients/d-2', { email: 'drop@example.org' });
    const calls = await callsDuring(async () =>
      expect(verdict(await remove('clients/d-2'))).toEqual(['deleted', null]),
    );
    expect(calls).toEqual([]);
    expect(mirror.usersOf('d-1')).toHaveLength(1);
  });
});

describe('changes that meet a call in flight', () => {
  test('a delete during a create deletes what the create made', async () => {
    mirror.hold({ operation: 'createClient', match: { partnerUserId: 'f-delete' } });
    await put('clients/f-delete', { email: 'f-delete@example.org' }, 0);
    await until('the create has arrived', () => mirror.usersOf('f-delete').length === 1);
    await remove('clients/f-delete', 0);
    mirror.release();
    expect(verdict(await get('clients/f-delete', 60))).toEqual(['deleted', null]);
    expect(mirror.usersOf('f-delete')).toEqual([]);
  });

  test('a new PUT during a delete makes the person anew', async () => {
    await put('clients/f-again', { email: 'f-again@example.org' });
    const before = mirror.usersOf('f-again')[0]?.userId;
    mirror.hold({ operation: 'deleteUser', match: { partnerUserId: 'f-again' } });
    await remove('clients/f-again', 0);
    await until('the delete has arrived', () => mirror.usersOf('f-again').length === 0);
    await put('clients/f-again', { email: 'f-again@example.org' }, 0);
    mirror.release();
    expect(verdict(await get('clients/f-again', 60))).toEqual(['synced', null]);
    expect(mirror.usersOf('f-again')).toHaveLength(1);
    expect(mirror.usersOf('f-again')[0]?.userId).not.toBe(before);
  });

  test('a new list during a list ends with the new one', async () => {
    for (const id of ['fl-a', 'fl-b']) await put(`providers/${id}`, { email: `${id}@example.org` });
    await put('clients/f-list');
    mirror.hold({ operation: 'setClientProviders', match: { partnerUserId: 'f-list' } });
    const change = (providers: string[]) =>
      service.call('PUT', '/v1/clients/f-list/providers', { body: { providers }, wait: 0 });
    const lists = mirror.arrivals('setClientProviders');
    await change(['fl-a']);
    await until('the list has arrived', () => mirror.arrivals('setClientProviders') > lists);
    await change(['fl-b', 'fl-a']);
    mirror.release();
    expect(verdict(await get('clients/f-list', 60))).toEqual(['synced', null]);
    const ids = [await get('providers/fl-b'), await get('providers/fl-a')].map(({ platformUserId }) => platformUserId);
    expect(mirror.usersOf('f-list')).toMatchObject([{ providerUserIds: ids }]);
  });
});

describe('the platform’s word', () => {
  test('that somebody is not acceptable is shown, and mended by a new PUT', async () => {
    mirror.trouble({ operation: 'createProvider', kind: 'status', status: 400, match: { partnerUserId: 'refused' } });
    const refused = await put('providers/refused', { email: 'refused@example.org' });
    expect(verdict(refused)).toEqual(['failed', 'rejected']);
    expect(refused.sync.error?.message).toContain('as ordered');
    expect(verdict(await put('providers/refused', { email: 'refused@example.org' }))).toEqual(['synced', null]);
  });

  test('that a client is gone when its list is sent is left for review; create makes it again', async () => {
    await put('clients/missing');
    const [user] = mirror.usersOf('missing');
    if (user) mirror.simulator.state.users.remove(user);
    await put('providers/other', { email: 'other@example.org' });
    expect(verdict(await put('clients/missing', { providers: ['other'] }))).toEqual([
      'needs-review',
      'platform-user-missing',
    ]);
    expect(verdict(await resolve('clients/missing', { action: 'create' }))).toEqual(['synced', null]);
    expect(mirror.usersOf('missing')).toHaveLength(1);
  });

  test('that the user with this email is one that another person is linked to is left for review', async () => {
    mirror.trouble({ operation: 'createProvider', kind: 'status', status: 400, match: { partnerUserId: 'm-1' } });
    expect(verdict(await put('providers/m-1', { email: 'm-1@example.org' }))).toEqual(['failed', 'rejected']);
    const moved = mirror.simulator.state.users.add({
      role: 'HealthcareProvider',
      email: 'm-2@example.org',
      firstName: 'M',
      lastName: 'M',
      providerUserIds: [],
    });
    await resolve('providers/m-1', { action: 'link', platformUserId: moved.userId });
    expect(verdict(await put('providers/m-2', { email: 'm-2@example.org' }))).toEqual([
      'needs-review',
      'platform-user-taken',
    ]);
  });
});

test('a synced person is not resolved: a good mapping is never dropped, nobody is made again', async () => {
  const { platformUserId } = await put('clients/good');
  for (const body of [{ action: 'create' }, { action: 'ignore' }, { action: 'link', platformUserId: 'made-up' }]) {
    const { status } = await service.call('POST', '/v1/clients/good/resolve', { body });
    expect(status).toBe(409);
  }
  expect((await get('clients/good')).platformUserId).toBe(platformUserId);
  expect(mirror.usersOf('good')).toHaveLength(1);
});

test('nobody was made twice in all of this', () => {
  expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
});
