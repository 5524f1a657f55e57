import { randomUUID } from 'node:crypto';
import type { TraceResponse } from '../../../src/people/api/trace.dto.js';
import { NOT_SENT } from '../../../src/people/rules/call-result.js';
import { CallsRepository, type TakenCall } from '../../../src/people/store/calls.repository.js';
import { PlatformUsersRepository } from '../../../src/people/store/platform-users.repository.js';
import type { UserRole } from '../../../src/platform/contract/wire-types.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { get, begin, beginRemoval, put, settled, verdict, verdictOf, callsDuring } = peopleOf(world);

const SYNCED = ['synced', null];
const calls = () => world.get(CallsRepository);
const idOf = async (path: string) => {
  const [row] = await world.sql<{ id: string }>('SELECT id FROM people WHERE external_id = $1', [path.split('/')[1]]);
  return row?.id ?? '';
};
/** Marks the next call of a person, as a process that dies before it sends or stores anything. */
async function die(path: string): Promise<TakenCall> {
  await world.advance('1 ms');
  const taken = await calls().take(await idOf(path), randomUUID());
  if (!taken) throw new Error(`No call of ${path} is due.`);
  return taken;
}
/** Adds a client's user as the platform's own application does. */
const addUser = (more: { email?: string; partnerUserId: string }): string => {
  const user = { role: 'Client' as const, firstName: 'M', lastName: 'M', providerUserIds: [], ...more };
  return world.platform.simulator.state.users.add(user).userId;
};
/** Delivers a USER_CREATED event. */
async function tell(payload: { userId: string; role: UserRole; externalUserId: string }): Promise<void> {
  world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
  await world.settle();
}
const passing = async (span: '16 s' | '24 s' | '2 min' | '61 min') => {
  await world.advance(span);
  await world.settle();
};

beforeEach(() => put('providers/home'));

describe('a mark whose commit is not confirmed', () => {
  test('lets no call leave, and is taken back', async () => {
    await begin('clients/c-1');
    const take = calls().take.bind(calls());
    const taking = jest.spyOn(calls(), 'take').mockImplementationOnce(async (id, callId) => {
      await take(id, callId);
      throw new Error('Connection terminated unexpectedly');
    });
    await world.settle();
    expect(taking).toHaveBeenCalled();
    expect(world.platform.arrivals('createClient')).toBe(0);
    // Without an email, no look-up could tell whether a lost create took effect. So it must not count as sent.
    expect((await verdict('clients/c-1'))[0]).toBe('pending');
    await passing('16 s');
    await passing('2 min');
    expect([await verdict('clients/c-1'), world.platform.usersOf('c-1').length]).toEqual([SYNCED, 1]);
  });

  test('of a call that leaves too late lets it not leave, and it is tried again after 5 s', async () => {
    await begin('clients/c-1');
    const take = calls().take.bind(calls());
    const taking = jest.spyOn(calls(), 'take').mockImplementation(async (id, callId) => {
      const taken = await take(id, callId);
      await world.advance('2 s');
      return taken;
    });
    for (let times = 0; times < 10; times += 1) await passing('16 s');
    expect(world.platform.arrivals('createClient')).toBe(0);
    expect(taking.mock.calls.length).toBeLessThanOrEqual(10);
    taking.mockRestore();
    await passing('61 min');
    expect(await verdict('clients/c-1')).toEqual(SYNCED);
  });
});

describe('a process that dies between the two transactions of', () => {
  test('a check: it is sent again', async () => {
    await begin('providers/p-1');
    await die('providers/p-1');
    expect(await callsDuring(() => world.settle())).toEqual([]);
    for (const _step of ['abandoned', 'again']) await passing('24 s');
    expect([await verdict('providers/p-1'), world.platform.usersOf('p-1').length]).toEqual([SYNCED, 1]);
  });

  test('a create with an email: it is looked up after the grace period', async () => {
    await begin('providers/p-1');
    const held = await world.untilHeld({ operation: 'checkUser' });
    world.platform.release();
    jest.spyOn(calls(), 'settle').mockImplementationOnce(async () => false);
    await held.ended;
    await world.settle();
    const before = world.platform.arrivals('createProvider');
    for (let times = 0; times < 5; times += 1) await passing('24 s');
    await passing('2 min');
    expect(await verdict('providers/p-1')).toEqual(SYNCED);
    expect(world.platform.usersOf('p-1')).toHaveLength(1);
    expect(world.platform.arrivals('createProvider') - before).toBeLessThanOrEqual(1);
  });

  test('a create without an email: an operator decides', async () => {
    await begin('clients/c-1');
    await die('clients/c-1');
    await passing('24 s');
    expect(await verdict('clients/c-1')).toEqual(['needs-review', 'create-unknown']);
    await world.call('POST', '/v1/clients/c-1/resolve', { body: { action: 'create' } });
    expect(verdictOf(await settled('clients/c-1'))).toEqual(SYNCED);
    expect(world.platform.usersOf('c-1')).toHaveLength(1);
  });

  test('a list: it is sent again', async () => {
    const { platformUserId } = await put('providers/second');
    await put('clients/c-1');
    await begin('clients/c-1', { providers: ['second'] });
    await die('clients/c-1');
    for (const _step of ['abandoned', 'again']) await passing('24 s');
    expect(await verdict('clients/c-1')).toEqual(SYNCED);
    expect(world.platform.usersOf('c-1')).toMatchObject([{ providerUserIds: [platformUserId] }]);
  });

  test('a deletion: it is completed, also if the person is wanted again', async () => {
    const { platformUserId } = await put('clients/c-1', { email: 'c-1@example.org' });
    await beginRemoval('clients/c-1');
    await die('clients/c-1');
    await begin('clients/c-1', { email: 'c-1@example.org' });
    for (const _step of ['abandoned', 'again']) await passing('24 s');
    expect(await verdict('clients/c-1')).toEqual(SYNCED);
    expect(world.platform.usersOf('c-1').map(({ userId }) => userId === platformUserId)).toEqual([false]);
  });
});

describe('two workers', () => {
  test('make one call at a time for a person, also when both have its job', async () => {
    const another = await world.startAnother();
    await begin('providers/p-1');
    await world.advance('1 ms');
    await Promise.all([world.work.people(), another.work.people()]);
    await world.settle();
    expect(await verdict('providers/p-1')).toEqual(SYNCED);
    expect([world.platform.arrivals('checkUser'), world.platform.arrivals('createProvider')]).toEqual([2, 2]);
    expect(world.platform.usersOf('p-1')).toHaveLength(1);
  });

  test('that meet a call in flight make none', async () => {
    const another = await world.startAnother();
    await begin('providers/p-1');
    const held = await world.untilHeld({ operation: 'createProvider' });
    expect(await callsDuring(() => another.work.people())).toEqual([]);
    await held.answer();
    expect([await verdict('providers/p-1'), world.platform.usersOf('p-1').length]).toEqual([SYNCED, 1]);
  });
});

describe('an answer that comes after its call was given up', () => {
  const stored = (path: string) => world.sql('SELECT * FROM people WHERE external_id = $1', [path.split('/')[1]]);

  test.each([
    ['an applied list', { kind: 'applied' }],
    ['a deletion', { kind: 'deleted' }],
    ['an unknown email', { kind: 'absent' }],
    ['nothing', null],
  ] as const)('(%s) does not change the person', async (_name, said) => {
    await put('providers/second');
    await put('clients/c-1');
    await begin('clients/c-1', { providers: ['second'] });
    const taken = await die('clients/c-1');
    for (const _step of ['abandoned', 'again']) await passing('24 s');
    const before = await stored('clients/c-1');
    const result = said
      ? { ...NOT_SENT, kind: 'ok' as const, status: 200, said }
      : { ...NOT_SENT, kind: 'unknown-outcome' as const };
    await calls().settle(taken, result);
    expect(await stored('clients/c-1')).toEqual(before);
  });

  test('(a refusal) does not fail the person', async () => {
    await begin('clients/c-1', { email: 'c-1@example.org' });
    const taken = await die('clients/c-1');
    for (const _step of ['abandoned', 'again']) await passing('24 s');
    await calls().settle(taken, { ...NOT_SENT, kind: 'rejected', status: 400 });
    expect(await verdict('clients/c-1')).toEqual(SYNCED);
  });

  test('(a user of a create) is kept as a second user if the person has another one', async () => {
    await begin('clients/c-1');
    const taken = await die('clients/c-1');
    await passing('24 s');
    await world.call('POST', '/v1/clients/c-1/resolve', { body: { action: 'create' } });
    const { platformUserId } = await settled('clients/c-1');
    const userId = randomUUID();
    await calls().settle(taken, { ...NOT_SENT, kind: 'ok', status: 201, said: { kind: 'created', userId } });
    expect((await settled('clients/c-1')).platformUserId).toBe(platformUserId);
    const { body } = await world.call<{ person: object }>('GET', `/v1/people/platform-users/${userId}`);
    expect(body.person).toEqual({ kind: 'client', externalId: 'c-1' });
  });
});

describe('a create in flight', () => {
  const absent = { ...NOT_SENT, kind: 'ok', status: 200, said: { kind: 'absent' } } as const;
  /** A create that was marked, of a person whose email the platform does not know. */
  async function creating(path: string, more: object = {}): Promise<TakenCall> {
    await begin(path, more);
    await calls().settle(await die(path), absent);
    return die(path);
  }

  test('that is lost after an event has named another user is looked up, so that a deletion finds both', async () => {
    const email = 'c-1@example.org';
    const create = await creating('clients/c-1', { email });
    addUser({ email, partnerUserId: 'c-1' });
    await tell({ userId: addUser({ partnerUserId: 'c-1' }), externalUserId: 'c-1', role: 'Client' });
    await calls().settle(create, { ...NOT_SENT, kind: 'unknown-outcome' });
    await beginRemoval('clients/c-1');
    for (const _step of ['lookup', 'deletion']) await passing('2 min');
    expect(await verdict('clients/c-1')).toEqual(['deleted', null]);
    expect(world.platform.usersOf('c-1')).toEqual([]);
  });

  test('of a provider keeps its invitation, although its answer comes late', async () => {
    const create = await creating('providers/p-1');
    await world.advance('24 s');
    await calls().take(await idOf('providers/p-1'), randomUUID());
    const said = { kind: 'created', userId: randomUUID() } as const;
    await calls().settle(create, {
      ...NOT_SENT,
      kind: 'ok',
      status: 200,
      said,
      inviteUrl: 'https://platform.example/i',
    });
    expect(await get('providers/p-1')).toMatchObject({
      platformUserId: said.userId,
      inviteUrl: 'https://platform.example/i',
    });
  });
});

test('a late event about a user that is being deleted does not link it again', async () => {
  const { platformUserId: userId } = await put('providers/p-1');
  await beginRemoval('providers/p-1');
  const deletion = await die('providers/p-1');
  await begin('providers/p-1');
  const users = world.get(PlatformUsersRepository);
  const isDeleted = users.isDeleted.bind(users);
  const asked = jest.spyOn(users, 'isDeleted').mockImplementationOnce(async (...user) => {
    const before = await isDeleted(...user);
    world.platform.simulator.state.users.remove(world.platform.usersOf('p-1')[0] as never);
    await calls().settle(deletion, { ...NOT_SENT, kind: 'ok', status: 200, said: { kind: 'deleted' } });
    return before;
  });
  await tell({ userId: userId as string, externalUserId: 'p-1', role: 'HealthcareProvider' });
  expect(asked).toHaveBeenCalled();
  const back = await settled('providers/p-1');
  expect(verdictOf(back)).toEqual(SYNCED);
  expect(world.platform.usersOf('p-1').map((user) => user.userId)).toEqual([back.platformUserId]);
});

test('an answer that is stored twice, because its commit was not confirmed, counts once', async () => {
  await put('providers/second');
  await put('clients/c-1');
  await begin('clients/c-1', { providers: ['second'] });
  const list = await die('clients/c-1');
  for (const _time of ['unconfirmed', 'again']) await calls().settle(list, { ...NOT_SENT, kind: 'unreachable' });
  const body = { kind: 'client', externalId: 'c-1' };
  const { history } = (await world.call<TraceResponse>('POST', '/v1/people/trace', { body })).body;
  expect(history.filter(({ outcome }) => outcome === 'unreachable')).toHaveLength(1);
});

test('an answer is stored once the database accepts it', async () => {
  await begin('clients/c-1');
  jest.spyOn(calls(), 'settle').mockRejectedValueOnce(new Error('Connection terminated unexpectedly'));
  await world.settle();
  expect([await verdict('clients/c-1'), world.platform.usersOf('c-1').length]).toEqual([SYNCED, 1]);
});

test('a client that decides to wait while its provider is being mapped is woken', async () => {
  for (let round = 0; round < 5; round += 1) {
    await begin(`providers/p-${round}`);
    const held = await world.untilHeld({ operation: 'createProvider' });
    await Promise.all([held.answer(), begin(`clients/c-${round}`, { providers: [`p-${round}`] })]);
    expect(verdictOf(await settled(`clients/c-${round}`))).toEqual(SYNCED);
  }
});
