import type { Page } from '../../src/http/request/page.js';
import type { NamesResponse, PersonResponse } from '../../src/people/api/person-view.js';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import { useWorld } from '../world/use-world.js';

interface ProblemBody {
  type: string;
  detail: string;
  pointer?: string;
  clients?: number;
}

const world = useWorld();

const ada = { email: 'Ada.Osei@example.org', firstName: 'Ada', lastName: 'Osei' };
const provider = (externalId: string) => ({ email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });

async function syncedProvider(externalId: string): Promise<PersonResponse> {
  const answer = await world.call('PUT', `/v1/providers/${externalId}`, { body: provider(externalId), wait: 60 });
  expect([externalId, answer.status, answer.body.sync.state]).toEqual([externalId, 200, 'synced']);
  return answer.body;
}

async function syncedClient(externalId: string, providers: string[], more: object = {}): Promise<PersonResponse> {
  const body = { firstName: 'Cleo', lastName: 'Adler', providers, ...more };
  const answer = await world.call('PUT', `/v1/clients/${externalId}`, { body, wait: 60 });
  expect([externalId, answer.status, answer.body.sync.state]).toEqual([externalId, 200, 'synced']);
  return answer.body;
}

const userOf = (externalId: string) => world.platform.usersOf(externalId);
const arrivalsOf = (operation: string) => world.platform.arrivals(operation);

describe('a provider', () => {
  test('answers 202 until mirrored, then 200 with the platform user id and the invite URL', async () => {
    const first = await world.call('PUT', '/v1/providers/p-ada', { body: ada });
    expect([first.status, first.body.sync.state]).toEqual([202, 'pending']);
    expect(first.body).toMatchObject({ externalId: 'p-ada', kind: 'provider', platformUserId: null, inviteUrl: null });
    expect(first.body).not.toHaveProperty('providers');

    await world.settle();
    const { body: synced } = await world.call('GET', '/v1/providers/p-ada');
    const [user] = userOf('p-ada');
    expect(synced.sync.state).toBe('synced');
    expect(synced).toMatchObject({ ...ada, platformUserId: user?.userId, sync: { error: null, notPushable: [] } });
    expect(synced.inviteUrl).toMatch(/\/invite\//);
    const again = await world.call('PUT', '/v1/providers/p-ada', { body: ada });
    expect([again.status, again.body.sync.state]).toEqual([200, 'synced']);
  });

  test('is linked, not created, if the platform knows its email', async () => {
    const known = world.platform.simulator.state.users.add({
      role: 'HealthcareProvider',
      ...provider('p-known'),
      providerUserIds: [],
    });
    const creates = arrivalsOf('createProvider');
    expect((await syncedProvider('p-known')).platformUserId).toBe(known.userId);
    expect(arrivalsOf('createProvider')).toBe(creates);
  });

  test('may have an id with a slash, a space and an accent', async () => {
    const path = `/v1/providers/${encodeURIComponent('dr/1 é')}`;
    const answer = await world.call('PUT', path, { body: provider('slash'), wait: 60 });
    expect([answer.status, answer.body.externalId]).toEqual([200, 'dr/1 é']);
    expect(userOf('dr/1 é')).toHaveLength(1);
    expect((await world.call('GET', path)).body.sync.state).toBe('synced');
  });

  test('is deleted on the platform before DELETE answers 200', async () => {
    await syncedProvider('p-gone');
    const answer = await world.call('DELETE', '/v1/providers/p-gone', { wait: 60 });
    expect([answer.status, answer.body.sync.state, answer.body.platformUserId]).toEqual([200, 'deleted', null]);
    expect(userOf('p-gone')).toEqual([]);
    const again = await world.call('DELETE', '/v1/providers/p-gone');
    expect([again.status, again.body.sync.state]).toEqual([200, 'deleted']);
  });

  test('answers 404 to the DELETE of an unknown id', async () => {
    const { status, body } = await world.call<ProblemBody>('DELETE', '/v1/providers/p-never');
    expect([status, body.type]).toEqual([404, 'urn:notebridge:problem:provider-not-found']);
  });

  test('counts as deleted if the platform no longer knows it', async () => {
    await syncedProvider('p-proof');
    await world.call('DELETE', '/v1/providers/p-proof', { wait: 60 }); // a 404 is believed once a delete has succeeded
    const { platformUserId } = await syncedProvider('p-vanished');
    const user = world.platform.simulator.state.users.find(platformUserId ?? '');
    if (user) world.platform.simulator.state.users.remove(user);
    const answer = await world.call('DELETE', '/v1/providers/p-vanished', { wait: 60 });
    expect([answer.status, answer.body.sync.state]).toEqual([200, 'deleted']);
  });

  test('cannot be deleted while clients name it: 409 with their count', async () => {
    await syncedProvider('p-named');
    await syncedClient('c-names-1', ['p-named']);
    await syncedClient('c-names-2', ['p-named']);
    const { status, body } = await world.call<ProblemBody>('DELETE', '/v1/providers/p-named');
    expect([status, body.type, body.clients]).toEqual([409, 'urn:notebridge:problem:provider-in-use', 2]);
    expect((await world.call('GET', '/v1/providers/p-named')).body.sync.state).toBe('synced');

    await world.call('DELETE', '/v1/clients/c-names-1', { wait: 60 });
    await world.call('DELETE', '/v1/clients/c-names-2', { wait: 60 });
    expect((await world.call('DELETE', '/v1/providers/p-named', { wait: 60 })).status).toBe(200);
    expect(userOf('p-named')).toEqual([]);
  });

  test('is created again by a PUT after its deletion', async () => {
    const before = await syncedProvider('p-revived');
    await world.call('DELETE', '/v1/providers/p-revived', { wait: 60 });
    const after = await syncedProvider('p-revived');
    expect(after.platformUserId).not.toBe(before.platformUserId);
    expect(userOf('p-revived')).toHaveLength(1);
  });

  test('keeps a changed name or email in notPushable, without a call', async () => {
    await syncedProvider('p-renamed');
    const before = world.platform.arrivals();
    const body = { ...provider('p-renamed'), lastName: 'Weiss', email: 'other@example.org' };
    const answer = await world.call('PUT', '/v1/providers/p-renamed', { body, wait: 60 });
    expect([answer.status, answer.body.sync.state]).toEqual([200, 'synced']);
    expect(answer.body.sync.notPushable).toEqual(['email', 'lastName']);
    expect(answer.body.lastName).toBe('Weiss');
    expect(userOf('p-renamed')).toMatchObject([{ lastName: 'Ruiz' }]);
    expect(world.platform.arrivals()).toBe(before);
    const back = await world.call('PUT', '/v1/providers/p-renamed', { body: provider('p-renamed') });
    expect(back.body.sync.notPushable).toEqual([]);
  });
});

describe('a client', () => {
  beforeEach(async () => {
    for (const externalId of ['p-1', 'p-2', 'p-3'])
      await world.call('PUT', `/v1/providers/${externalId}`, { body: provider(externalId) });
    await world.settle();
  });
  const platformIds = async (...ids: string[]) =>
    Promise.all(
      ids.map(async (externalId) => (await world.call('GET', `/v1/providers/${externalId}`)).body.platformUserId),
    );

  test('is created under its primary provider, then gets its whole list, in order', async () => {
    const lists = arrivalsOf('setClientProviders');
    const client = await syncedClient('c-many', ['p-2', 'p-1', 'p-3'], { email: 'cleo@example.org' });
    expect(client).toMatchObject({ kind: 'client', email: 'cleo@example.org', providers: ['p-2', 'p-1', 'p-3'] });
    expect(userOf('c-many')[0]?.providerUserIds).toEqual(await platformIds('p-2', 'p-1', 'p-3'));
    expect(arrivalsOf('setClientProviders')).toBe(lists + 1);
  });

  test('needs one call with one provider and no email', async () => {
    const before = world.platform.arrivals();
    const client = await syncedClient('c-one', ['p-1']);
    expect(client.email).toBeNull();
    expect(world.platform.arrivals()).toBe(before + 1);
  });

  test('gets its list sent after a link, because the platform’s list is unknown', async () => {
    const known = world.platform.simulator.state.users.add({
      role: 'Client',
      email: 'linked@example.org',
      firstName: 'L',
      lastName: 'K',
      providerUserIds: [],
    });
    const client = await syncedClient('c-linked', ['p-3'], { email: 'linked@example.org' });
    expect(client.platformUserId).toBe(known.userId);
    expect(known.providerUserIds).toEqual(await platformIds('p-3'));
  });

  test('gets its whole list replaced, even if only the primary provider changed', async () => {
    await syncedClient('c-swap', ['p-1', 'p-2']);
    for (const providers of [['p-2', 'p-1'], ['p-3'], ['p-1', 'p-2', 'p-3'], ['p-2', 'p-3']]) {
      const answer = await world.call('PUT', '/v1/clients/c-swap/providers', { body: { providers }, wait: 60 });
      expect([answer.status, answer.body.sync.state, answer.body.providers]).toEqual([200, 'synced', providers]);
      expect(userOf('c-swap')[0]?.providerUserIds).toEqual(await platformIds(...providers));
    }
  });

  test('needs no call for the same list again', async () => {
    await syncedClient('c-same', ['p-1', 'p-2']);
    const before = world.platform.arrivals();
    await syncedClient('c-same', ['p-1', 'p-2']);
    expect(world.platform.arrivals()).toBe(before);
  });

  test('ends with the latest list after concurrent replacements', async () => {
    await syncedClient('c-race', ['p-1']);
    const lists = [['p-1', 'p-2'], ['p-2'], ['p-3', 'p-1'], ['p-2', 'p-3'], ['p-1']];
    for (const providers of lists) {
      await Promise.all([
        world.call('PUT', '/v1/clients/c-race/providers', { body: { providers: ['p-3', 'p-2'] } }),
        world.call('PUT', '/v1/clients/c-race/providers', { body: { providers } }),
      ]);
    }
    await world.settle();
    const { body: last } = await world.call('GET', '/v1/clients/c-race');
    expect(last.sync.state).toBe('synced');
    expect(userOf('c-race')[0]?.providerUserIds).toEqual(await platformIds(...(last.providers ?? [])));
  });

  test('waits for a provider that is not mirrored yet, then continues automatically', async () => {
    await world.call('PUT', '/v1/providers/p-slow', { body: provider('p-slow') });
    const held = await world.untilHeld({ operation: 'checkUser', match: { email: 'p-slow@example.org' } });
    const body = { firstName: 'W', lastName: 'T', providers: ['p-slow', 'p-1'] };
    const first = await world.call('PUT', '/v1/clients/c-waits', { body });
    expect([first.status, first.body.sync.state, first.body.sync.error?.code]).toEqual([
      202,
      'waiting',
      'provider-not-mirrored',
    ]);
    await held.answer();
    const later = await world.call('GET', '/v1/clients/c-waits');
    expect(later.body.sync).toMatchObject({ state: 'synced', error: null });
    expect(userOf('c-waits')[0]?.providerUserIds).toEqual(await platformIds('p-slow', 'p-1'));
  });

  test('frees its providers once it is deleted', async () => {
    await syncedProvider('p-free');
    await syncedClient('c-free', ['p-free']);
    expect((await world.call('DELETE', '/v1/clients/c-free', { wait: 60 })).status).toBe(200);
    expect(userOf('c-free')).toEqual([]);
    expect((await world.call('DELETE', '/v1/providers/p-free', { wait: 60 })).status).toBe(200);
  });

  test('keeps only its external id and former platform user after its deletion', async () => {
    const before = await syncedClient('c-forgotten', ['p-1'], { email: 'forgotten@example.org' });
    const deleted = await world.call('DELETE', '/v1/clients/c-forgotten', { wait: 60 });
    for (const { body } of [deleted, await world.call('GET', '/v1/clients/c-forgotten')]) {
      expect(body).toMatchObject({ externalId: 'c-forgotten', email: null, firstName: '', lastName: '' });
      expect(body.sync).toMatchObject({ state: 'deleted', notPushable: [] });
    }
    const [kept] = await world.sql(
      `SELECT email_fingerprint, applied_profile, unsettled_profile, invite_url, error_text,
         (SELECT count(*)::int FROM email_claims c WHERE c.person_id = p.id) AS claims,
         (SELECT platform_user_id FROM platform_users u WHERE u.person_id = p.id) AS former
       FROM people p WHERE external_id = 'c-forgotten'`,
    );
    expect(kept).toEqual({
      email_fingerprint: null,
      applied_profile: null,
      unsettled_profile: null,
      invite_url: null,
      error_text: null,
      claims: 0,
      former: before.platformUserId,
    });
    // Another person may now use the email, and this one may return.
    await syncedClient('c-successor', ['p-1'], { email: 'forgotten@example.org' });
    expect(await syncedClient('c-forgotten', ['p-1'])).toMatchObject({ firstName: 'Cleo', lastName: 'Adler' });
  });

  test('has no provider list after its deletion until it is PUT again', async () => {
    await syncedClient('c-dead', ['p-1']);
    await world.call('DELETE', '/v1/clients/c-dead', { wait: 60 });
    const { status } = await world.call('PUT', '/v1/clients/c-dead/providers', { body: { providers: ['p-2'] } });
    expect(status).toBe(404);
    const revived = await syncedClient('c-dead', ['p-2', 'p-1']);
    expect(userOf('c-dead')).toMatchObject([{ userId: revived.platformUserId }]);
    expect(userOf('c-dead')[0]?.providerUserIds).toEqual(await platformIds('p-2', 'p-1'));
  });

  test('loses a provider from its list before the platform deletes that provider', async () => {
    await syncedProvider('p-leaving');
    await syncedClient('c-left', ['p-leaving', 'p-1']);
    await world.call('PUT', '/v1/clients/c-left/providers', { body: { providers: ['p-1'] } });
    const held = await world.untilHeld({ operation: 'setClientProviders', match: { partnerUserId: 'c-left' } });
    const removed = await world.call('DELETE', '/v1/providers/p-leaving');
    expect(removed.status).toBe(202);
    // Later work continues while the deletion waits for the list's answer.
    await syncedProvider('p-meanwhile');
    expect(userOf('p-leaving')).toHaveLength(1);
    expect((await world.call('GET', '/v1/providers/p-leaving')).body.sync).toMatchObject({
      state: 'deleting',
      error: { code: 'clients-still-listed' },
    });
    await held.answer();
    expect((await world.call('GET', '/v1/providers/p-leaving')).body.sync.state).toBe('deleted');
    expect(userOf('p-leaving')).toEqual([]);
  });
});

describe('bad input is rejected with its JSON pointer, and nothing is stored', () => {
  const refused = async (method: string, path: string, body: unknown) => {
    const answer = await world.call<ProblemBody>(method, path, { body });
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    return [answer.status, answer.body.pointer ?? null];
  };

  test.each([
    ['an unknown field', { ...ada, phone: '1' }, '/phone'],
    ['an email without @', { ...ada, email: 'ada.example.org' }, '/email'],
    ['no email', { firstName: 'A', lastName: 'B' }, '/email'],
    ['an empty name', { ...ada, firstName: '  ' }, '/firstName'],
    ['a name that is not a string', { ...ada, lastName: 7 }, '/lastName'],
    ['a list instead of an object', [ada], '/0'],
  ])('a provider with %s', async (_name, body, pointer) => {
    expect(await refused('PUT', '/v1/providers/p-bad', body)).toEqual([400, pointer]);
    expect((await world.call('GET', '/v1/providers/p-bad')).status).toBe(404);
  });

  test.each([
    ['no provider', { providers: [] }, 400, '/providers'],
    ['a provider named twice', { providers: ['p-1', 'p-1'] }, 400, '/providers'],
    ['a bad email', { providers: ['p-1'], email: 'x@' }, 400, '/email'],
    ['an unknown provider', { providers: ['p-1', 'p-nobody'] }, 422, '/providers/1'],
  ])('a client with %s', async (_name, more, status, pointer) => {
    await syncedProvider('p-1');
    expect(await refused('PUT', '/v1/clients/c-bad', { firstName: 'A', lastName: 'B', ...more })).toEqual([
      status,
      pointer,
    ]);
    expect((await world.call('GET', '/v1/clients/c-bad')).status).toBe(404);
  });

  test('answers 413 to a body larger than 2 MiB', async () => {
    const body = { ...ada, firstName: 'x'.repeat(2 * 1024 * 1024) };
    expect((await world.call('PUT', '/v1/providers/p-large', { body })).status).toBe(413);
  });

  test('answers 401 to a wrong key', async () => {
    expect((await world.call('GET', '/v1/providers/p-1', { key: 'wrong' })).status).toBe(401);
  });

  test('rejects an unknown action and a link without its user', async () => {
    expect(await refused('POST', '/v1/providers/p-1/resolve', { action: 'merge' })).toEqual([400, '/action']);
    expect(await refused('POST', '/v1/providers/p-1/resolve', { action: 'link' })).toEqual([400, '/platformUserId']);
  });
});

describe('people are found', () => {
  test('page by page in the order of their ids, deleted ones only by state', async () => {
    const ids = ['l-1', 'l-2', 'l-3', 'l-4', 'l-5'];
    for (const externalId of ids) await syncedProvider(externalId);
    await world.call('DELETE', '/v1/providers/l-3', { wait: 60 });
    const seen: string[] = [];
    let cursor = '';
    do {
      const page = await world.call<Page<PersonResponse>>('GET', `/v1/providers?limit=3&state=synced${cursor}`);
      expect(page.body.items.length).toBeLessThanOrEqual(3);
      seen.push(...page.body.items.map(({ externalId }) => externalId));
      cursor = page.body.nextCursor ? `&cursor=${encodeURIComponent(page.body.nextCursor)}` : '';
    } while (cursor);
    expect(seen.filter((id) => id.startsWith('l-'))).toEqual(['l-1', 'l-2', 'l-4', 'l-5']);
    expect(new Set(seen).size).toBe(seen.length);
    const all = await world.call<Page<PersonResponse>>('GET', '/v1/providers?limit=200');
    expect(all.body.items.map(({ externalId }) => externalId)).not.toContain('l-3');
    const deleted = await world.call<Page<PersonResponse>>('GET', '/v1/providers?limit=200&state=deleted');
    expect(deleted.body.items.map(({ externalId }) => externalId)).toContain('l-3');
    expect((await world.call('GET', '/v1/providers?state=asleep')).status).toBeGreaterThanOrEqual(400);
  });

  test('by email in any case, and by external id of either kind', async () => {
    await syncedProvider('both');
    await syncedClient('both', ['both'], { email: 'MiXed@Example.org' });
    const search = async (body: object) =>
      (await world.call<Page<PersonResponse>>('POST', '/v1/people/search', { body })).body.items.map(
        ({ kind, externalId }) => `${kind} ${externalId}`,
      );
    expect(await search({ email: ' mixed@example.ORG ' })).toEqual(['client both']);
    expect((await search({ externalId: 'both' })).sort()).toEqual(['client both', 'provider both']);
    expect(await search({ email: 'nobody@example.org' })).toEqual([]);
  });

  test('by their provider, page by page', async () => {
    await syncedProvider('p-many');
    await syncedProvider('p-other');
    for (const id of ['m-1', 'm-2', 'm-3']) await syncedClient(id, id === 'm-2' ? ['p-other'] : ['p-other', 'p-many']);
    type People = Page<PersonResponse>;
    const first = (await world.call<People>('GET', '/v1/clients?provider=p-many&limit=1')).body;
    const rest = (await world.call<People>('GET', `/v1/clients?provider=p-many&cursor=${first.nextCursor}`)).body;
    const ids = [...first.items, ...rest.items].map(({ externalId }) => externalId);
    expect([ids, rest.nextCursor]).toEqual([['m-1', 'm-3'], null]);
    const deleted = await world.call<People>('GET', '/v1/clients?provider=p-many&state=deleted');
    const unknown = await world.call<People>('GET', '/v1/clients?provider=p-unknown');
    expect([deleted.body.items, unknown.body.items]).toEqual([[], []]);
  });

  test('by name, for many ids in one request; unknown and deleted ones are absent', async () => {
    await syncedProvider('n-1');
    await syncedClient('n-1', ['n-1'], { firstName: 'Noor', lastName: 'Haddad' });
    await syncedClient('n-2', ['n-1']);
    await world.call('DELETE', '/v1/clients/n-2', { wait: 60 });
    const names = async (body: object) => (await world.call<NamesResponse>('POST', '/v1/people/names', { body })).body;
    const { items } = await names({ providers: ['n-1', 'n-?'], clients: ['n-2', 'n-1', 'n-1'] });
    const client = { kind: 'client', externalId: 'n-1', firstName: 'Noor', lastName: 'Haddad' };
    expect(items).toEqual(expect.arrayContaining([client, expect.objectContaining({ kind: 'provider' })]));
    expect(items).toHaveLength(2);
    expect((await names({})).items).toEqual([]);
    await world.sql("UPDATE people SET profile = 'x' WHERE kind = 'client' AND external_id = 'n-1'");
    const unreadable = (await names({ clients: ['n-1'] })).items;
    expect(unreadable).toEqual([{ ...client, firstName: null, lastName: null }]);
    const many = await world.call('POST', '/v1/people/names', { body: { clients: Array(201).fill('n-1') } });
    expect(many.status).toBe(400);
  });

  test('in a trace with state, next step and history, which makes no call', async () => {
    await syncedProvider('p-traced');
    const before = world.platform.arrivals();
    const body = { externalId: 'p-traced', kind: 'provider' };
    const { body: trace } = await world.call<TraceResponse>('POST', '/v1/people/trace', { body });
    expect(trace.history.map(({ operation, outcome }) => [operation, outcome])).toEqual([
      ['createProvider', 'created'],
      ['checkUser', 'absent'],
    ]);
    expect(trace).toMatchObject({ state: 'synced', nextStep: { what: 'none' } });
    expect(JSON.stringify(trace)).not.toContain('example.org');
    expect(world.platform.arrivals()).toBe(before);
  });
});

describe('Prefer: wait', () => {
  test('answers as soon as the person is settled, with Preference-Applied', async () => {
    world.platform.hold({ operation: 'checkUser', count: null, match: { email: 'p-held@example.org' } });
    const answers: string[] = [];
    const put = async (externalId: string) => {
      const answer = await world.call('PUT', `/v1/providers/${externalId}`, { body: provider(externalId), wait: 60 });
      answers.push(externalId);
      return answer;
    };
    // It starts to wait first, so it would be answered first if both waited for their full time.
    const checks = arrivalsOf('checkUser');
    const held = put('p-held');
    await world.untilCalled('checkUser', checks);
    const answer = await put('p-wait');
    expect([answer.status, answer.headers.get('preference-applied')]).toEqual([200, 'wait=60']);
    expect(answers).toEqual(['p-wait']);
    world.platform.release();
    expect([(await held).status, (await held).body.sync.state]).toEqual([200, 'synced']);
  });

  test('answers 202 once the time is over', async () => {
    world.platform.hold({ operation: 'checkUser', count: null, match: { email: 'p-late@example.org' } });
    const answer = await world.call('PUT', '/v1/providers/p-late', { body: provider('p-late'), wait: 1 });
    expect([answer.status, answer.body.sync.state]).toEqual([202, 'pending']);
    world.platform.release();
    expect((await world.call('GET', '/v1/providers/p-late', { wait: 60 })).body.sync.state).toBe('synced');
  });
});

describe('without an apiKey in the contract', () => {
  test('keeps a PUT as pending with not-configured, and makes no call', async () => {
    await world.restart({ PLATFORM_CONTRACT: undefined });
    const answer = await world.call('PUT', '/v1/providers/p-1', { body: ada, wait: 1 });
    expect([answer.status, answer.body.sync.state, answer.body.sync.error?.code]).toEqual([
      202,
      'pending',
      'not-configured',
    ]);
    expect(world.platform.simulator.state.arrivals.list()).toEqual([]);
    await world.restart();
    expect((await world.call('GET', '/v1/providers/p-1', { wait: 60 })).body.sync.state).toBe('synced');
  });
});
