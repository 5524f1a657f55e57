import { randomUUID } from 'node:crypto';
import type { FaultRule } from '../../simulator/gate/fault-rule.js';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import type { UserRole } from '../../src/platform/contract/wire-types.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { begin, beginRemoval, put, remove, get, settled, resolve, verdict, verdictOf } = peopleOf(world);

const usersOf = (externalId: string) => world.platform.usersOf(externalId);
const hasUser = (userId: string) => world.platform.simulator.state.users.find(userId) !== undefined;
/** Adds a user as the platform's own application does. */
const addUser = (role: UserRole, more: { email?: string; partnerUserId?: string }): string =>
  world.platform.simulator.state.users.add({ role, firstName: 'M', lastName: 'M', providerUserIds: [], ...more })
    .userId;
/** Delivers a USER_CREATED event. */
async function tell(payload: { userId: string; role: UserRole; externalUserId?: string }): Promise<void> {
  world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
  await world.settle();
}
async function unknownToEhr(): Promise<string[]> {
  const list = await world.call<{ items: { platformUserId: string }[] }>('GET', '/v1/people/unknown-to-ehr');
  return list.body.items.map(({ platformUserId }) => platformUserId);
}
async function othersOf(externalId: string): Promise<string[]> {
  const body = { kind: 'client', externalId };
  const trace = await world.call<TraceResponse>('POST', '/v1/people/trace', { body });
  return trace.body.known.otherPlatformUserIds;
}

beforeEach(() => put('providers/home'));

test.each<[string, Pick<FaultRule, 'kind'> & Partial<FaultRule>]>([
  ['400', { kind: 'status', status: 400 }],
  ['403', { kind: 'forbid' }],
  ['429', { kind: 'rate-limit', retryAfter: 'seconds', retryAfterSeconds: 60 }],
])('a client keeps its user when its deletion was rejected (%s) and it is wanted again', async (_status, rule) => {
  const { platformUserId } = await put('clients/kept');
  world.platform.injectFault({ operation: 'deleteUser', ...rule });
  await remove('clients/kept');
  await begin('clients/kept');
  await world.advance('2 min');
  const kept = await settled('clients/kept');
  expect([...verdictOf(kept), kept.platformUserId]).toEqual(['synced', null, platformUserId]);
  expect(usersOf('kept').map(({ userId }) => userId)).toEqual([platformUserId]);
  expect(world.platform.arrivals('deleteUser')).toBe(1);
});

describe('a client whose email belongs to a clinician’s user', () => {
  const email = 'dr.osei@example.org';
  const MISMATCH = ['needs-review', 'role-mismatch', null];
  let userId: string;
  beforeEach(() => {
    userId = addUser('HealthcareProvider', { email });
  });

  test('is not linked if the platform reported the role before', async () => {
    await tell({ userId, role: 'HealthcareProvider' });
    const refused = await put('clients/patient', { email });
    expect([...verdictOf(refused), refused.platformUserId]).toEqual(MISMATCH);
    await remove('clients/patient');
    expect(hasUser(userId)).toBe(true);
  });

  test('never deletes the user, even if the platform reports the role later', async () => {
    expect((await put('clients/patient', { email })).platformUserId).toBe(userId);
    await tell({ userId, role: 'HealthcareProvider' });
    expect(verdictOf(await remove('clients/patient'))).toEqual(['needs-review', 'delete-linked']);
    expect(hasUser(userId)).toBe(true);
  });

  test('does not delete the user until an operator decides; ignore leaves it', async () => {
    await put('clients/patient', { email });
    expect(verdictOf(await remove('clients/patient'))).toEqual(['needs-review', 'delete-linked']);
    await resolve('clients/patient', { action: 'ignore' });
    expect(verdictOf(await settled('clients/patient'))).toEqual(['deleted', null]);
    expect([hasUser(userId), world.platform.arrivals('deleteUser')]).toEqual([true, 0]);
  });
});

test.each(['OrgAdmin', 'Client'] as const)('a provider linked by its email never deletes an %s', async (role) => {
  const email = 'boss@example.org';
  const userId = addUser(role, { email });
  expect((await put('providers/boss', { email })).origin).toBe('linked');
  expect(verdictOf(await remove('providers/boss'))).toEqual(['needs-review', 'delete-linked']);
  await tell({ userId, role });
  expect(await verdict('providers/boss')).toEqual(['needs-review', 'delete-linked']);
  expect([hasUser(userId), world.platform.arrivals('deleteUser')]).toEqual([true, 0]);
});

test('a linked client is deleted by an operator, or once the platform reports its role', async () => {
  const email = 'noor@example.org';
  const first = addUser('Client', { email });
  expect((await put('clients/noor', { email })).origin).toBe('linked');
  await remove('clients/noor');
  await resolve('clients/noor', { action: 'delete' });
  expect(verdictOf(await settled('clients/noor'))).toEqual(['deleted', null]);

  const second = addUser('Client', { email });
  await put('clients/noor', { email });
  expect(verdictOf(await remove('clients/noor'))).toEqual(['needs-review', 'delete-linked']);
  await tell({ userId: second, role: 'Client' });
  expect(await verdict('clients/noor')).toEqual(['deleted', null]);
  expect([hasUser(first), hasUser(second)]).toEqual([false, false]);
});

test('a create with another user than the event keeps both, and the deletion deletes both', async () => {
  await begin('clients/noor');
  const held = await world.untilHeld({ operation: 'createClient' });
  const [made] = usersOf('noor');
  const userId = addUser('Client', { partnerUserId: 'noor' });
  world.platform.simulator.state.deliveries.send({
    eventType: 'USER_CREATED',
    payload: { userId, externalUserId: 'noor', role: 'Client' },
  });
  await world.platform.webhooksSent();
  await world.work.inbox();
  await held.answer();
  const torn = await settled('clients/noor');
  expect([...verdictOf(torn), torn.platformUserId]).toEqual(['synced', null, userId]);
  expect(await unknownToEhr()).toEqual([]);
  const shown = await world.call<{ person: object }>('GET', `/v1/people/platform-users/${made?.userId}`);
  expect(shown.body.person).toEqual({ kind: 'client', externalId: 'noor' });
  expect(await othersOf('noor')).toEqual([made?.userId]);

  expect(verdictOf(await remove('clients/noor'))).toEqual(['deleted', null]);
  expect([hasUser(userId), hasUser(made?.userId ?? '')]).toEqual([false, false]);
});

test('a second user that an event names is deleted with its person, also after a rename', async () => {
  await put('clients/noor');
  const second = addUser('Client', { partnerUserId: 'noor' });
  await tell({ userId: second, externalUserId: 'noor', role: 'Client' });
  await world.call('POST', '/v1/clients/noor/rename', { body: { externalId: 'nora' } });
  expect(await othersOf('nora')).toEqual([second]);
  expect(verdictOf(await remove('clients/nora'))).toEqual(['deleted', null]);
  expect(hasUser(second)).toBe(false);
});

describe('USER_CREATED', () => {
  /** A client that waits for review, because the answer to its create was lost. */
  async function lostClient(): Promise<string> {
    world.platform.injectFault({ operation: 'createClient', kind: 'commit-then-cut' });
    expect(verdictOf(await put('clients/lost'))).toEqual(['needs-review', 'create-unknown']);
    return usersOf('lost')[0]?.userId ?? '';
  }

  test('links a client that waits for review after a lost answer', async () => {
    const userId = await lostClient();
    await tell({ userId, externalUserId: 'lost', role: 'Client' });
    const { sync, platformUserId } = await get('clients/lost');
    expect([sync.state, platformUserId]).toEqual(['synced', userId]);
    expect(await unknownToEhr()).toEqual([]);
  });

  test('deletes the user of a client that was deleted since then', async () => {
    const userId = await lostClient();
    await beginRemoval('clients/lost');
    await tell({ userId, externalUserId: 'lost', role: 'Client' });
    expect([await verdict('clients/lost'), usersOf('lost')]).toEqual([['deleted', null], []]);
  });

  test('with another role or an unknown external id links no person', async () => {
    await lostClient();
    const [role, unidentified, stranger] = [randomUUID(), randomUUID(), randomUUID()];
    await tell({ userId: role, externalUserId: 'lost', role: 'HealthcareProvider' });
    await tell({ userId: unidentified, role: 'OrgAdmin' });
    await tell({ userId: stranger, externalUserId: 'never-named', role: 'Client' });
    expect((await get('clients/lost')).platformUserId).toBeNull();
    expect((await unknownToEhr()).sort()).toEqual([role, unidentified, stranger].sort());
  });

  test('never changes the user of a mapped person', async () => {
    const { platformUserId } = await put('clients/mapped');
    await tell({ userId: randomUUID(), externalUserId: 'mapped', role: 'Client' });
    expect((await get('clients/mapped')).platformUserId).toBe(platformUserId);
  });

  test('for a deleted user does not link it to the returning person', async () => {
    const { platformUserId } = await put('clients/lost');
    await remove('clients/lost');
    await lostClient();
    await tell({ userId: platformUserId ?? '', externalUserId: 'lost', role: 'Client' });
    const back = await get('clients/lost');
    expect([...verdictOf(back), back.platformUserId]).toEqual(['needs-review', 'create-unknown', null]);
  });
});
