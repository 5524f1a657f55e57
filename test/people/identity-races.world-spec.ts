import { randomUUID } from 'node:crypto';
import type { TraceResponse } from '../../src/people/api/trace.dto.js';
import { NOT_SENT } from '../../src/people/rules/call-result.js';
import { CallsRepository, type TakenCall } from '../../src/people/store/calls.repository.js';
import { FormerIdsRepository } from '../../src/people/store/former-ids.repository.js';
import { PeopleRepository } from '../../src/people/store/people.repository.js';
import { identitiesIn } from '../support/renamed-people.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { put, get, begin, remove, settled, verdict, verdictOf } = peopleOf(world);
const { rename, merge, moved } = identitiesIn(world);

const calls = () => world.get(CallsRepository);
const addUser = (more: { email?: string; partnerUserId: string }): string => {
  const user = { role: 'Client' as const, firstName: 'M', lastName: 'M', providerUserIds: [], ...more };
  return world.platform.simulator.state.users.add(user).userId;
};

/** Marks the next call of a client, as a process that does not store its answer for long. */
async function die(client: string): Promise<TakenCall> {
  await world.advance('1 ms');
  const [row] = await world.sql<{ id: string }>('SELECT id FROM people WHERE external_id = $1', [client]);
  const taken = await calls().take(row?.id ?? '', randomUUID());
  if (!taken) throw new Error(`No call of ${client} is due.`);
  return taken;
}

/** Creates a client that has no user, because the platform rejects it. */
async function unmirrored(path: string, more: object = {}): Promise<void> {
  world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 400 });
  expect((await put(path, more)).sync.state).toBe('failed');
}

/** Delivers a USER_CREATED event. @param meanwhile happens once the handler has found the person, and before it locks it */
async function tell(userId: string, externalUserId: string, meanwhile: () => Promise<unknown>): Promise<void> {
  const people = world.get(PeopleRepository);
  const lock = people.lock.bind(people);
  const locking = jest.spyOn(people, 'lock').mockImplementationOnce(async (...args) => {
    await meanwhile();
    return lock(...args);
  });
  const payload = { userId, externalUserId, role: 'Client' as const };
  world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
  await world.settle();
  expect(locking).toHaveBeenCalled();
  locking.mockRestore();
}

beforeEach(async () => {
  world.platform.set({ stepMs: 1 });
  await put('providers/home');
});

describe('USER_CREATED links the person that has the id by then, if the person of its id is meanwhile', () => {
  test('merged', async () => {
    await unmirrored('clients/a');
    await unmirrored('clients/b');
    const userId = addUser({ partnerUserId: 'a' });
    await tell(userId, 'a', () => merge('clients/a', 'b'));
    expect((await get('clients/b')).platformUserId).toBe(userId);
  });

  test('renamed', async () => {
    await unmirrored('clients/a');
    const userId = addUser({ partnerUserId: 'a' });
    await tell(userId, 'a', () => rename('clients/a', 'new'));
    expect((await get('clients/new')).platformUserId).toBe(userId);
  });
});

test('a user that a lookup links while its event is handled has one person, whom only its own deletion deletes', async () => {
  const email = 'noor@example.org';
  await put('clients/b');
  const userId = addUser({ email, partnerUserId: 'b' });
  await tell(userId, 'b', async () => {
    await begin('clients/a', { email });
    const said = { kind: 'exists', userId } as const;
    await calls().settle(await die('a'), { ...NOT_SENT, kind: 'ok', status: 200, said });
  });
  expect((await get('clients/a')).platformUserId).toBe(userId);
  const body = { kind: 'client', externalId: 'b' };
  const { known } = (await world.call<TraceResponse>('POST', '/v1/people/trace', { body })).body;
  expect(known.otherPlatformUserIds).toEqual([]);
  await remove('clients/b');
  expect(world.platform.simulator.state.users.find(userId)?.userId).toBe(userId);
});

describe('a rename to an id that another person gives up meanwhile is refused', () => {
  test.each([
    ['by a rename', () => rename('clients/x', 'y')],
    ['by a merge', () => merge('clients/x', 'b')],
  ])('%s', async (_, giveUp) => {
    for (const client of ['a', 'b', 'x']) await put(`clients/${client}`);
    const ids = world.get(FormerIdsRepository);
    const real = ids.rename.bind(ids);
    jest.spyOn(ids, 'rename').mockImplementationOnce(async (...args) => {
      expect((await giveUp()).status).toBe(200);
      return real(...args);
    });
    expect((await moved('POST', 'clients/a/rename', { externalId: 'x' })).slice(0, 2)).toEqual([409, 'id-taken']);
    expect(await verdict('clients/a')).toEqual(['synced', null]);
  });
});

test('the late answer to a create of a merged client gives its user to the survivor', async () => {
  await put('clients/b');
  await begin('clients/a');
  const create = await die('a');
  await world.advance('24 s');
  await world.settle();
  await world.call('POST', '/v1/clients/a/resolve', { body: { action: 'create' } });
  expect(verdictOf(await settled('clients/a'))).toEqual(['synced', null]);
  expect((await merge('clients/a', 'b')).status).toBe(200);
  const userId = randomUUID();
  await calls().settle(create, { ...NOT_SENT, kind: 'ok', status: 201, said: { kind: 'created', userId } });
  const { body } = await world.call<{ person: object }>('GET', `/v1/people/platform-users/${userId}`);
  expect(body.person).toEqual({ kind: 'client', externalId: 'b' });
});

test('a merge that frees the email of the survivor does not answer that it is taken', async () => {
  const email = 'noor@example.org';
  await unmirrored('clients/a', { email });
  expect(verdictOf(await put('clients/b', { email }))).toEqual(['needs-review', 'email-taken']);
  const { body } = await merge('clients/a', 'b');
  expect(verdictOf(body)).toEqual(['pending', null]);
  expect(verdictOf(await settled('clients/b'))).toEqual(['synced', null]);
});

test('a merge that extends a legal hold waits for retention, which has read the holds before', async () => {
  for (const client of ['a', 'b']) await put(`clients/${client}`);
  await world.call('PUT', '/v1/clients/a/legal-hold', { body: { reason: 'case-1' } });
  const retention = await world.database.pool.connect();
  await retention.query('BEGIN; SELECT pg_advisory_xact_lock_shared(727012)');
  const merging = merge('clients/a', 'b');
  const waiting = `SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory'`;
  try {
    await world.eventually('the merge waits', async () => (await world.sql(waiting)).length > 0);
  } finally {
    await retention.query('COMMIT');
    retention.release();
  }
  expect((await merging).status).toBe(200);
});
