import { useWorld } from '../world/use-world.js';

const world = useWorld();

const provider = (externalId: string) =>
  world.call('PUT', `/v1/providers/${externalId}`, {
    body: { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' },
  });
const client = (n: number, providers: string[]) =>
  world.call('PUT', `/v1/clients/c-${n}`, { body: { firstName: 'Cleo', lastName: 'Moss', providers } });

test('a hundred clients of the same providers can be put concurrently without a deadlock', async () => {
  const names = ['p-1', 'p-2', 'p-3'];
  for (const name of names) await provider(name);
  const deadlocks = async () =>
    (await world.sql('SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()'))[0];
  const before = await deadlocks();
  for (let round = 0; round < 2; round++) {
    // Each PUT of a client makes the imported providers urgent.
    await world.sql("UPDATE people SET urgent = false WHERE kind = 'provider'");
    const answers = await Promise.all([
      ...Array.from({ length: 100 }, (_, n) => client(n, n % 2 ? names : [...names].reverse())),
      ...names.map(provider),
    ]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  }
  expect(await deadlocks()).toEqual(before);
  const urgent = await world.sql("SELECT DISTINCT urgent FROM people WHERE kind = 'provider'");
  expect(urgent).toEqual([{ urgent: true }]);
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
