import type { ResolveSelectionResponse } from '../../src/people/api/people.dto.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { put, resolve, verdicts, verdictOf } = peopleOf(world);

const select = async <Body = ResolveSelectionResponse>(body: object) =>
  world.call<Body>('POST', '/v1/people/resolve', { body: { code: 'create-unknown', action: 'create', ...body } });
const count = async (body: object = {}) => (await select({ ...body, dryRun: true })).body;

/** Clients whose creates got no answer and had no effect. */
const LOST = ['clients/a', 'clients/b', 'clients/c'];
const UNKNOWN = ['needs-review', 'create-unknown'];
const SYNCED = ['synced', null];

beforeEach(async () => {
  await put('providers/home');
  for (const path of LOST) {
    world.platform.injectFault({ operation: 'createClient', kind: 'refuse' });
    await put(path);
    await put('clients/mirrored'); // three creates without an answer in a row would stop the operation
    await world.call('DELETE', '/v1/clients/mirrored');
    await world.settle();
  }
  expect(await verdicts(LOST)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
});

describe('POST /v1/people/resolve', () => {
  test('counts a selection, then resolves exactly these people', async () => {
    const planned = await count();
    expect(planned).toMatchObject({ dryRun: true, count: 3, more: false });
    expect(await verdicts(LOST)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
    const { body } = await select({ plan: planned.plan });
    expect(body).toEqual({ ...planned, dryRun: false });
    await world.settle();
    expect(await verdicts(LOST)).toEqual([SYNCED, SYNCED, SYNCED]);
    expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  });

  test('resolves only the named people, and only of the named kind', async () => {
    expect(await count({ kind: 'provider' })).toMatchObject({ count: 0 });
    const named = { externalIds: ['a', 'b', 'home'], kind: 'client' };
    const { plan } = await count(named);
    expect(plan.count).toBe(2);
    await select({ ...named, plan });
    await world.settle();
    expect(await verdicts(LOST)).toEqual([SYNCED, SYNCED, UNKNOWN]);
  });

  test('resolves no one if one of them has changed since it was counted', async () => {
    const { plan } = await count();
    await resolve('clients/b', { action: 'ignore' });
    const { status, body } = await select<object>({ plan });
    expect([status, body]).toEqual([
      409,
      expect.objectContaining({ type: 'urn:notebridge:problem:plan-changed', planned: 3, count: 2 }),
    ]);
    await world.settle();
    expect(await verdicts(LOST)).toEqual([UNKNOWN, ['failed', 'ignored'], UNKNOWN]);
  });

  test('resolves no one if the selection has as many people, but others', async () => {
    const { plan } = await count({ externalIds: ['a', 'b'] });
    expect((await select<object>({ externalIds: ['b', 'c'], plan })).status).toBe(409);
  });

  test('leaves out people that do not accept the action', async () => {
    world.platform.injectFault({ operation: 'setClientProviders', kind: 'status', status: 400 });
    await put('providers/other');
    await put('clients/listed');
    expect(verdictOf(await put('clients/listed', { providers: ['other'] }))).toEqual(['failed', 'rejected']);
    expect(await count({ code: 'rejected' })).toMatchObject({ count: 0 });
    expect(await count({ code: 'rejected', action: 'retry' })).toMatchObject({ count: 1 });
  });

  test('refuses link and delete, which are decided one by one, and codes that need no operator', async () => {
    for (const body of [{ action: 'link' }, { action: 'delete' }, { code: 'platform-unreachable' }])
      expect((await select<object>({ ...body, dryRun: true })).status).toBe(400);
    expect((await select<object>({})).status).toBe(400);
  });
});
