import type { AuditPageResponse } from '../../src/audit/audit.dto.js';
import type { SelectionResponse } from '../../src/people/api/people.dto.js';
import { contractFile } from '../support/contract-file.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { begin, beginRemoval, put, resolve, verdict, verdicts, verdictOf, callsDuring } = peopleOf(world);

const select = async <Body = SelectionResponse>(body: object) =>
  world.call<Body>('POST', '/v1/people/resolve', { body: { code: 'create-unknown', action: 'create', ...body } });
const count = async (body: object = {}) => (await select({ ...body, dryRun: true })).body.count;

const retry = <Body = SelectionResponse>(query: Record<string, string>) =>
  world.call<Body>('POST', `/v1/people/retry?${new URLSearchParams({ code: 'rejected', ...query })}`);
const counted = async (query: Record<string, string> = {}) => (await retry({ ...query, dryRun: 'true' })).body.count;

const SYNCED = ['synced', null];
const REJECTED = ['failed', 'rejected'];

/** Adds clients that the platform has rejected; each has a platform user, so that none accepts `create`. */
const addRejected = (number: number) =>
  world.sql(
    `INSERT INTO people (id, kind, external_id, state, fault, error_code, platform_user_id, origin)
     SELECT gen_random_uuid(), 'client', 'old-' || n, 'failed', 'rejected', 'rejected', gen_random_uuid()::text, 'created'
     FROM generate_series(1, $1::int) n`,
    [number],
  );

describe('POST /v1/people/resolve', () => {
  /** Clients whose creates got no answer and had no effect. */
  const LOST = ['clients/a', 'clients/b', 'clients/c'];
  const UNKNOWN = ['needs-review', 'create-unknown'];

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

  test('counts a selection, then resolves it', async () => {
    expect(await count()).toBe(3);
    expect(await verdicts(LOST)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
    expect((await select({ count: 3 })).body).toEqual({ dryRun: false, count: 3 });
    await world.settle();
    expect(await verdicts(LOST)).toEqual([SYNCED, SYNCED, SYNCED]);
    expect(world.platform.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  });

  test('resolves only the named people, and only of the named kind and state', async () => {
    expect([await count({ kind: 'provider' }), await count({ state: 'failed' })]).toEqual([0, 0]);
    const named = { externalIds: ['a', 'b', 'home'], kind: 'client' };
    expect(await count(named)).toBe(2);
    await select({ ...named, count: 2 });
    await world.settle();
    expect(await verdicts(LOST)).toEqual([SYNCED, SYNCED, UNKNOWN]);
  });

  test('resolves those that are left if some have changed since they were counted', async () => {
    await resolve('clients/b', { action: 'ignore' });
    expect((await select({ count: 3 })).body).toEqual({ dryRun: false, count: 2 });
    await world.settle();
    expect(await verdicts(LOST)).toEqual([SYNCED, ['failed', 'ignored'], SYNCED]);
  });

  test('resolves no one without a count, except by a retry, which loses nothing', async () => {
    expect((await select<object>({})).status).toBe(400);
    expect((await select({ action: 'retry' })).status).toBe(200);
    expect(await verdicts(LOST)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
  });

  test('resolves no one if more people match than were counted', async () => {
    const { status, body } = await select<object>({ count: 2 });
    expect([status, body]).toEqual([
      409,
      expect.objectContaining({ type: 'urn:notebridge:problem:plan-changed', planned: 2, count: 3 }),
    ]);
    await world.settle();
    expect(await verdicts(LOST)).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
  });

  test('leaves out people that do not accept the action, however many they are', async () => {
    await addRejected(1_100);
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400 });
    expect(verdictOf(await put('clients/z'))).toEqual(REJECTED);
    expect(await count({ code: 'rejected' })).toBe(1);
    const all = { code: 'rejected', action: 'ignore' };
    expect(await count(all)).toBe(1_101);
    expect((await select({ ...all, count: 1_101 })).body).toMatchObject({ count: 1_101 });
    expect(await verdicts(['clients/z', 'clients/old-7'])).toEqual([
      ['failed', 'ignored'],
      ['failed', 'ignored'],
    ]);
  });

  test('retries only the named people', async () => {
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400, count: 2 });
    const failed = ['clients/y', 'clients/z'];
    expect([verdictOf(await put('clients/y')), verdictOf(await put('clients/z'))]).toEqual([REJECTED, REJECTED]);
    await select({ code: 'rejected', action: 'retry', externalIds: ['z'], count: 1 });
    await world.settle();
    expect(await verdicts(failed)).toEqual([REJECTED, SYNCED]);
  });

  test('refuses what is decided one by one, and codes that need no operator', async () => {
    for (const body of [{ action: 'link' }, { action: 'delete' }, { code: 'platform-unreachable' }, { count: 'all' }])
      expect((await select<object>({ ...body, dryRun: true })).status).toBe(400);
  });
});

describe('POST /v1/people/retry', () => {
  const FAILED = ['providers/a', 'providers/b', 'providers/c'];
  const refuse = () =>
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400, count: null });

  /** Providers that the platform rejects until it is corrected. */
  beforeEach(async () => {
    refuse();
    for (const path of FAILED) await begin(path);
    await world.settle();
    expect(await verdicts(FAILED)).toEqual([REJECTED, REJECTED, REJECTED]);
    world.platform.release();
  });

  test('counts a selection, then retries it', async () => {
    expect(await counted()).toBe(3);
    expect(await verdicts(FAILED)).toEqual([REJECTED, REJECTED, REJECTED]);
    expect((await retry({ count: '3' })).body).toEqual({ dryRun: false, count: 3 });
    await world.settle();
    expect(await verdicts(FAILED)).toEqual([SYNCED, SYNCED, SYNCED]);
    expect(await counted()).toBe(0);
    const query = new URLSearchParams({ provider: 'b', action: 'POST /v1/people/retry' });
    const { items } = (await world.call<AuditPageResponse>('GET', `/v1/audit?${query}`)).body;
    expect(items).toMatchObject([{ subjects: { provider: ['a', 'b', 'c'] }, outcome: 'ok' }]);
  });

  test('selects by kind and state', async () => {
    expect([await counted({ kind: 'client' }), await counted({ kind: 'provider' })]).toEqual([0, 3]);
    expect([await counted({ state: 'needs-review' }), await counted({ state: 'failed' })]).toEqual([0, 3]);
  });

  test('retries those that are left if some have succeeded since they were counted', async () => {
    await resolve('providers/a', { action: 'retry' });
    await world.settle();
    expect((await retry({ count: '3' })).body).toMatchObject({ count: 2 });
  });

  test('retries no one if more people match than were counted', async () => {
    const { status, body } = await retry<object>({ count: '2' });
    expect([status, body]).toEqual([
      409,
      expect.objectContaining({ type: 'urn:notebridge:problem:plan-changed', planned: 2, count: 3 }),
    ]);
    expect(await callsDuring(() => world.settle())).toEqual([]);
  });

  test('retries all without a count, and refuses what is none and codes that need no operator', async () => {
    const wrong: Record<string, string>[] = [{ count: 'all' }, { count: '-1' }, { code: 'platform-unreachable' }];
    for (const query of wrong) expect((await retry(query)).status).toBe(400);
    world.platform.release();
    expect((await retry({ state: 'failed' })).body).toEqual({ dryRun: false, count: 3 });
  });

  test('lets a PUT go first', async () => {
    refuse();
    for (let n = 0; n < 17; n += 1) await begin(`providers/more-${n}`);
    await world.settle();
    world.platform.release();
    expect((await retry({ count: '20' })).body.count).toBe(20);
    const held = await world.untilHeld({ operation: 'checkUser' });
    await begin('providers/urgent');
    await held.answer();
    await world.settle();
    const made = world.platform.simulator.state.users.list().map(({ partnerUserId }) => partnerUserId);
    expect(made).toHaveLength(21);
    // A few calls are in flight at a time.
    expect(made.indexOf('urgent')).toBeLessThan(8);
  });

  test('does not count people whom it would lead to the same review', async () => {
    const email = 'a@example.org';
    expect(verdictOf(await put('providers/double', { email }))).toEqual(['needs-review', 'email-taken']);
    expect(await counted({ code: 'email-taken' })).toBe(0);
  });

  test('repeats what a wrong setting made doubtful once it is corrected', async () => {
    await retry({ count: '3' });
    await world.settle();
    const gone = ['clients/gone-1', 'clients/gone-2'];
    for (const path of gone) await begin(path, { providers: ['a'] });
    await put('clients/moved', { providers: ['a'] });
    const wrong = { deleteUser: { path: '/users/{userId}/gone' }, setClientProviders: { path: '/lists/{userId}' } };
    await world.restart({ PLATFORM_CONTRACT: contractFile([], wrong) });
    for (const path of gone) await beginRemoval(path);
    await put('clients/moved', { providers: ['b'] });
    expect(await verdicts(gone)).toEqual([
      ['needs-review', 'delete-unconfirmed'],
      ['needs-review', 'delete-unconfirmed'],
    ]);
    expect(await verdict('clients/moved')).toEqual(['needs-review', 'platform-user-missing']);
    await world.restart();
    for (const code of ['delete-unconfirmed', 'platform-user-missing'])
      await retry({ code, count: `${await counted({ code })}` });
    await world.settle();
    expect(await verdicts([...gone, 'clients/moved'])).toEqual([['deleted', null], ['deleted', null], SYNCED]);
  });
});
