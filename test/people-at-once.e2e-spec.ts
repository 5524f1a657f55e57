import { until } from '../harness/until.js';
import { useSharedService } from './support/shared-service.js';

const shared = useSharedService({ env: { ROLES: 'api' } });

const provider = (externalId: string) =>
  shared.service.call('PUT', `/v1/providers/${externalId}`, {
    body: { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' },
  });
const client = (n: number, providers: string[]) =>
  shared.service.call('PUT', `/v1/clients/c-${n}`, { body: { firstName: 'Cleo', lastName: 'Moss', providers } });

test('two hundred clients that name the same providers of an import can be put at once', async () => {
  const { mirror } = shared;
  const names = ['p-1', 'p-2', 'p-3'];
  for (const name of names) await provider(name);
  const deadlocks = async () => {
    const [row] = await mirror.sql<{ deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(row?.deadlocks);
  };
  const before = await deadlocks();
  for (let round = 0; round < 5; round++) {
    // As an import leaves them: each PUT lifts them into the interactive lane. Meanwhile they are put themselves, too.
    await mirror.sql("UPDATE people SET lane = 'bulk' WHERE kind = 'provider'");
    const answers = await Promise.all([
      ...Array.from({ length: 200 }, (_, n) => client(n, n % 2 ? names : [...names].reverse())),
      ...names.map(provider),
    ]);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  }
  await until('the server has counted', async () => (await deadlocks()) >= before);
  expect(await deadlocks()).toBe(before);
  const lanes = await mirror.sql("SELECT DISTINCT lane FROM people WHERE kind = 'provider'");
  expect(lanes).toEqual([{ lane: 'interactive' }]);
});

test('a provider is not deleted while a client that names it is being put', async () => {
  const { mirror, service } = shared;
  for (let round = 0; round < 20; round++) {
    await provider(`p-${round}`);
    const [put, removed] = await Promise.all([
      client(round, [`p-${round}`]),
      service.call('DELETE', `/v1/providers/p-${round}`),
    ]);
    expect([put.status, removed.status]).toEqual(put.status === 422 ? [422, 200] : [202, 409]);
  }
  const [orphans] = await mirror.sql<{ count: number }>(
    `SELECT count(*)::int AS count FROM client_providers cp JOIN people q ON q.id = cp.provider_id WHERE NOT q.wanted`,
  );
  expect(orphans?.count).toBe(0);
});
