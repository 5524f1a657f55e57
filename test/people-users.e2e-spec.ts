import { until } from '../harness/until.js';
import type { FaultRule } from '../simulator/gate/fault-rule.js';
import type { PersonView } from '../src/people/person-view.js';
import { useSharedService } from './support/shared-service.js';

const shared = useSharedService();

/** Puts a person and waits until it is settled or needs somebody. */
async function put(path: string, more: object = {}, wait = 60): Promise<PersonView> {
  const names = { firstName: 'Pia', lastName: 'Ruiz', ...(path.startsWith('clients') && { providers: ['home'] }) };
  return (await shared.service.call('PUT', `/v1/${path}`, { body: { ...names, ...more }, wait })).body;
}
const get = async (path: string, wait = 0): Promise<PersonView> =>
  (await shared.service.call('GET', `/v1/${path}`, { wait })).body;
const remove = async (path: string, wait = 0): Promise<PersonView> =>
  (await shared.service.call('DELETE', `/v1/${path}`, { wait })).body;
const verdict = ({ sync }: PersonView) => [sync.state, sync.error?.code ?? null];
const endPause = () => shared.mirror.sql('UPDATE call_budgets SET blocked_until = now()');

beforeEach(() => put('providers/home', { email: 'home@example.org' }));
afterEach(() => shared.mirror.release());

test.each<[string, Pick<FaultRule, 'kind'> & Partial<FaultRule>]>([
  ['400', { kind: 'status', status: 400 }],
  ['403', { kind: 'forbid' }],
  ['429', { kind: 'rate-limit', retryAfter: 'seconds', retryAfterSeconds: 3_600 }],
])('a client whose deletion was refused (%s) and who is wanted again keeps its user', async (_status, rule) => {
  const { platformUserId } = await put('clients/kept');
  shared.mirror.trouble({ operation: 'deleteUser', ...rule });
  await remove('clients/kept');
  await until('the deletion is refused', async () => {
    const refused = "SELECT 1 FROM platform_calls WHERE operation = 'deleteUser' AND outcome IS NOT NULL";
    return (await shared.mirror.sql(refused)).length === 1;
  });
  await put('clients/kept', {}, 0);
  await endPause();
  const kept = await get('clients/kept', 60);
  expect([...verdict(kept), kept.platformUserId]).toEqual(['synced', null, platformUserId]);
  expect(shared.mirror.usersOf('kept').map(({ userId }) => userId)).toEqual([platformUserId]);
  expect(shared.mirror.arrivals('deleteUser')).toBe(1);
});
