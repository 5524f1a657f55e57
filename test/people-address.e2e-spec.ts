import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { partIs } from './support/health.js';
import { type Mirror, useMirrors } from './support/service.js';
import { forgetEverybody } from './support/shared-service.js';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

const call = async (method: string, path: string, body?: object, wait = 0): Promise<PersonResponse> =>
  (await service.call(method, `/v1/${path}`, { body, wait })).body;
const provider = (id: string) => ({ email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });
const client = (...providers: string[]) => ({ firstName: 'Noor', lastName: 'Haddad', providers });
const verdict = async (path: string) => {
  const { sync } = await call('GET', path);
  return [sync.state, sync.error?.code ?? null];
};
const becomes = (path: string, state: string) =>
  until(`${path} is ${state}`, async () => {
    const { sync } = await call('GET', path, undefined, 1);
    return sync.state === state && sync.error === null;
  });
const restart = async (env: Record<string, string> = {}) => {
  await service.kill('SIGTERM');
  service = await mirror.start(env);
  await mirror.sql('UPDATE circuits SET probe_at = now()');
};

beforeAll(async () => {
  mirror = await newMirror();
  service = await mirror.start();
});
beforeEach(() => forgetEverybody(mirror));

test.each(['message', 'page'] as const)(
  'under a wrong base URL (404 with a %s) nobody fails and nobody counts as deleted; all goes on under the right one',
  async (unknownPaths) => {
    mirror.simulator.state.settings = { ...mirror.simulator.state.settings, unknownPaths };
    for (const id of ['p1', 'p2']) await call('PUT', `providers/${id}`, provider(id));
    for (const id of ['gone', 'moved']) await call('PUT', `clients/${id}`, client('p1'));
    for (const path of ['providers/p1', 'providers/p2', 'clients/gone', 'clients/moved']) await becomes(path, 'synced');

    await restart({ PLATFORM_BASE_URL: `${mirror.simulator.url}/v9` });
    await call('PUT', 'providers/new', provider('new'));
    await call('DELETE', 'clients/gone');
    await call('PUT', 'clients/moved/providers', { providers: ['p2'] });
    const address = 'platform-address';
    await until('all are refused for the address', async () => {
      const states = [await verdict('providers/new'), await verdict('clients/gone'), await verdict('clients/moved')];
      return (
        JSON.stringify(states) ===
        JSON.stringify([
          ['pending', address],
          ['deleting', address],
          ['pending', address],
        ])
      );
    });
    expect(mirror.usersOf('gone')).toHaveLength(1);
    expect((await partIs(service, 'people', 'degraded')).reason).toContain('check PLATFORM_BASE_URL');

    await restart();
    await becomes('providers/new', 'synced');
    await becomes('clients/gone', 'deleted');
    await becomes('clients/moved', 'synced');
    expect(mirror.usersOf('gone')).toEqual([]);
  },
);

test('a 404 to a delete counts as done where user management has been seen to work', async () => {
  await call('PUT', 'providers/p1', provider('p1'));
  await becomes('providers/p1', 'synced');
  const [user] = mirror.usersOf('p1');
  if (user) mirror.simulator.state.users.remove(user);
  await call('DELETE', 'providers/p1');
  await becomes('providers/p1', 'deleted');
});

test.each([404, 405])(
  'a %d to one person’s create, while others are created, puts that one off alone',
  async (status) => {
    const match = { partnerUserId: 'own' };
    mirror.trouble({ operation: 'createProvider', kind: 'status', status, count: null, match });
    await call('PUT', 'providers/own', provider('own'));
    await until('it is refused', async () => (await verdict('providers/own'))[1] === 'platform-address');
    await call('PUT', 'providers/other', provider('other'));
    // The first probe comes by itself when this takes seconds.
    await until('the other one waits for its create', async () => {
      const { sync } = await call('GET', 'providers/other');
      return sync.step === 'createProvider' || sync.state === 'synced';
    });
    await mirror.sql('UPDATE circuits SET probe_at = now()');
    await becomes('providers/other', 'synced');
    const own = () =>
      mirror.sql<{ failures: number }>(
        `SELECT failures FROM people WHERE external_id = 'own' AND retry_at IS NOT NULL AND lease_owner IS NULL`,
      );
    for (const failures of [1, 2]) {
      await until('it is put off', async () => Number((await own())[0]?.failures) >= failures);
      expect(await mirror.sql('SELECT operation FROM circuits WHERE opened_at IS NOT NULL')).toEqual([]);
      expect(await verdict('providers/own')).toEqual(['pending', 'platform-address']);
      if (failures === 1)
        await mirror.sql("UPDATE people SET retry_at = NULL, due_at = now() WHERE external_id = 'own'");
    }
    mirror.release();
    await becomes('providers/own', 'synced');
  },
);
