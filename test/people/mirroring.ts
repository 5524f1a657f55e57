import type { World } from '../../harness/world/world.js';
import type { HealthReport, PartReport } from '../../src/operations/overview/health-report.js';
import type { PersonResponse } from '../../src/people/api/person-view.js';

type Verdict = [state: string, code: string | null];

/** Requests about people, who are named by paths such as `clients/c-1`; a client's only provider is `home`. */
export function peopleOf(world: World) {
  const call = async (method: string, path: string, body?: object): Promise<PersonResponse> =>
    (await world.call(method, `/v1/${path}`, { body })).body;
  const get = (path: string) => call('GET', path);
  const settled = async (path: string) => {
    await world.settle();
    return get(path);
  };
  const begin = (path: string, more: object = {}) => {
    const [, id] = path.split('/');
    const usual = path.startsWith('clients') ? { providers: ['home'] } : { email: `${id}@example.org` };
    return call('PUT', path, { firstName: 'Pia', lastName: 'Ruiz', ...usual, ...more });
  };
  const beginRemoval = (path: string) => call('DELETE', path);
  const verdictOf = ({ sync }: PersonResponse): Verdict => [sync.state, sync.error?.code ?? null];
  const operations = () => world.platform.simulator.state.arrivals.list().map(({ operation }) => operation);
  return {
    get,
    settled,
    begin,
    beginRemoval,
    verdictOf,
    verdict: async (path: string) => verdictOf(await get(path)),
    verdicts: (paths: string[]) => Promise.all(paths.map(async (path) => verdictOf(await get(path)))),
    put: async (path: string, more: object = {}) => {
      await begin(path, more);
      return settled(path);
    },
    remove: async (path: string) => {
      await beginRemoval(path);
      return settled(path);
    },
    resolve: (path: string, body: object) => world.call('POST', `/v1/${path}/resolve`, { body }),
    /** Operations that arrived while `work` was done. */
    callsDuring: async (work: () => Promise<unknown>): Promise<string[]> => {
      const before = world.platform.arrivals();
      await work();
      return operations().slice(before);
    },
    /** The health of a part. */
    health: async (part: string): Promise<PartReport | undefined> =>
      (await world.call<HealthReport>('GET', '/health/ready')).body.checks[part],
  };
}
