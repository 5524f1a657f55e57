import { randomUUID } from 'node:crypto';
import { Database } from '../../src/database/database.js';
import type { CallStep } from '../../src/people/model/next-step.js';
import { CallResultsRepository } from '../../src/people/reconcile/results.repository.js';
import { PeopleRepository } from '../../src/people/store/people.repository.js';
import { RateLimiterRepository } from '../../src/platform/rate-limit/rate-limiter.repository.js';
import { mirroredPeople } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const provider = (externalId: string) =>
  world.call('PUT', `/v1/providers/${externalId}`, {
    body: { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' },
  });
const client = (n: number, providers: string[]) =>
  world.call('PUT', `/v1/clients/c-${n}`, { body: { firstName: 'Cleo', lastName: 'Moss', providers } });
const stateOf = async (path: string) => (await world.call('GET', `/v1/${path}`)).body.sync;

test('no call is sent while the database grants no permit; afterwards the work completes', async () => {
  const granting = jest.spyOn(world.get(RateLimiterRepository), 'grant').mockRejectedValue(new Error('cut off'));
  await provider('p-1');
  await world.settle().catch(() => undefined);
  expect(granting).toHaveBeenCalled();
  expect(world.platform.arrivals()).toBe(0);
  granting.mockRestore();
  await world.settle();
  expect((await stateOf('providers/p-1')).state).toBe('synced');
});

test('a create is neither sent nor reviewed when its permit commits without an answer', async () => {
  await provider('p-1');
  await world.settle();
  const granting = jest.spyOn(world.get(RateLimiterRepository), 'grant');
  const database = world.get(Database);
  const { transaction } = database;
  const transacting = jest.spyOn(database, 'transaction').mockImplementation(async (...args) => {
    const before = granting.mock.calls.length;
    const result = await Reflect.apply(transaction, database, args);
    if (granting.mock.calls.length > before) throw new Error('Connection terminated unexpectedly');
    return result;
  });
  // Without an email, no lookup could tell whether the create took effect.
  await client(1, ['p-1']);
  await world.settle().catch(() => undefined);
  transacting.mockRestore();
  const lost = granting.mock.calls.map(([, , call]) => call.operation);
  expect(lost).toContain('createClient');
  expect(world.platform.arrivals('createClient')).toBe(0);
  await world.advance('2 min');
  await world.settle();
  expect(await stateOf('clients/c-1')).toMatchObject({ state: 'synced', error: null });
  expect(world.platform.usersOf('c-1')).toHaveLength(1);
});

test('an answer that arrives after the lease was lost does not change the person', async () => {
  await mirroredPeople(world);
  const known = () =>
    world.sql(`SELECT platform_user_id, providers_known, applied_providers, fault, review, failures, lease_owner, lease_no
               FROM people WHERE kind = 'client' AND external_id = 'c-1'`);
  const owner = randomUUID();
  await world.sql(`UPDATE people SET lease_owner = $1, lease_no = 7, lease_safe_at = now() WHERE external_id = 'c-1'`, [
    owner,
  ]);
  const before = await known();
  const person = await world.get(PeopleRepository).find({ kind: 'client', externalId: 'c-1' });
  if (!person) throw new Error('The client is missing.');
  const step: CallStep = { do: 'call', operation: 'setClientProviders', state: 'pending', notBefore: null };
  const ofAnother = { key: person.id, owner: randomUUID(), no: 7 };
  const former = { key: person.id, owner, no: 6 };
  for (const [operation, answer, lease] of [
    ['setClientProviders', { kind: 'applied' }, ofAnother],
    ['setClientProviders', { kind: 'not-found' }, former],
    ['deleteUser', { kind: 'deleted' }, ofAnother],
    ['deleteUser', { kind: 'deleted' }, former],
    ['checkUser', { kind: 'unreachable' }, former],
  ] as const) {
    await world.get(CallResultsRepository).record(
      {
        row: {
          person,
          step: { ...step, operation, providerUserIds: ['former'] },
          grant: { id: '0', grantedAt: world.now() },
          sendBeforeMs: 0,
          nextInMs: null,
        },
        lease,
      },
      { answer, outcome: { outcome: answer.kind, status: 200, durationMs: 1, reached: true } },
    );
  }
  expect(await known()).toEqual(before);
});

test('a hundred clients of the same providers can be put concurrently without a deadlock', async () => {
  const names = ['p-1', 'p-2', 'p-3'];
  for (const name of names) await provider(name);
  const deadlocks = async () =>
    (await world.sql('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'))[0];
  const before = await deadlocks();
  for (let round = 0; round < 2; round++) {
    // Each PUT of a client moves the imported providers into the interactive lane.
    await world.sql("UPDATE people SET lane = 'bulk' WHERE kind = 'provider'");
    const answers = await Promise.all([
      ...Array.from({ length: 100 }, (_, n) => client(n, n % 2 ? names : [...names].reverse())),
      ...names.map(provider),
    ]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  }
  expect(await deadlocks()).toEqual(before);
  const lanes = await world.sql("SELECT DISTINCT lane FROM people WHERE kind = 'provider'");
  expect(lanes).toEqual([{ lane: 'interactive' }]);
});

test('a provider is not deleted while a client that names it is being put', async () => {
  for (let round = 0; round < 10; round++) {
    await provider(`p-${round}`);
    const [put, removed] = await Promise.all([
      client(round, [`p-${round}`]),
      world.call('DELETE', `/v1/providers/p-${round}`),
    ]);
    expect([put.status, removed.status]).toEqual(put.status === 422 ? [422, 200] : [202, 409]);
  }
  expect(
    await world.sql('SELECT FROM client_providers cp JOIN people q ON q.id = cp.provider_id WHERE NOT q.wanted'),
  ).toEqual([]);
});

test('a PUT that meets a rename of its person is accepted or answered 409, never 500', async () => {
  const ids = Array.from({ length: 30 }, (_, number) => `p-met-${number}`);
  const put = (id: string, firstName: string) =>
    world.call('PUT', `/v1/providers/${id}`, { body: { email: `${id}@example.org`, firstName, lastName: 'Ruiz' } });
  await Promise.all(ids.map((id) => put(id, 'First')));
  const answers = await Promise.all(
    ids.flatMap((id) => [
      put(id, 'Second'),
      world.call('POST', `/v1/providers/${id}/rename`, { body: { externalId: `${id}-new` } }),
      put(id, 'Third'),
      put(id, 'Fourth'),
    ]),
  );
  expect(answers.map(({ status }) => status).filter((status) => ![200, 202, 409].includes(status))).toEqual([]);
});
