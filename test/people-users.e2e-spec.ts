import { until } from '../harness/until.js';
import type { FaultRule } from '../simulator/gate/fault-rule.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import type { UserRole } from '../src/platform/contract/wire-types.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { settledPerson } from './support/settled-person.js';
import { useSharedService } from './support/shared-service.js';

// A call that a slow machine answers late is not one without an answer.
const shared = useSharedService({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });

const settled = (path: string): Promise<PersonResponse> => settledPerson(shared.service, path);
/** What a PUT is answered at once. */
async function begin(path: string, more: object = {}): Promise<PersonResponse> {
  const names = { firstName: 'Pia', lastName: 'Ruiz', ...(path.startsWith('clients') && { providers: ['home'] }) };
  return (await shared.service.call('PUT', `/v1/${path}`, { body: { ...names, ...more } })).body;
}
/** Puts a person and waits until it is settled or needs somebody. */
const put = async (path: string, more: object = {}): Promise<PersonResponse> => {
  await begin(path, more);
  return settled(path);
};
const get = async (path: string): Promise<PersonResponse> => (await shared.service.call('GET', `/v1/${path}`)).body;
const beginRemoval = (path: string) => shared.service.call('DELETE', `/v1/${path}`);
const remove = async (path: string): Promise<PersonResponse> => {
  await beginRemoval(path);
  return settled(path);
};
const verdict = ({ sync }: PersonResponse) => [sync.state, sync.error?.code ?? null];
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
  await beginRemoval('clients/kept');
  await until('the deletion is refused', async () => {
    const refused = "SELECT 1 FROM platform_calls WHERE operation = 'deleteUser' AND outcome <> 'not-sent'";
    return (await shared.mirror.sql(refused)).length === 1;
  });
  await begin('clients/kept');
  await endPause();
  const kept = await settled('clients/kept');
  expect([...verdict(kept), kept.platformUserId]).toEqual(['synced', null, platformUserId]);
  expect(shared.mirror.usersOf('kept').map(({ userId }) => userId)).toEqual([platformUserId]);
  expect(shared.mirror.arrivals('deleteUser')).toBe(1);
});

/** A user whom somebody made in the platform's own application. */
const stranger = (role: UserRole, email: string) =>
  shared.mirror.simulator.state.users.add({ role, email, firstName: 'M', lastName: 'M', providerUserIds: [] });
const resolve = async (path: string, body: object) => shared.service.call('POST', `/v1/${path}/resolve`, { body });

/** Delivers a signed USER_CREATED event and waits until it was looked at. */
async function tell(payload: { userId: string; role: UserRole; externalUserId?: string }): Promise<void> {
  const body = Buffer.from(JSON.stringify({ eventType: 'USER_CREATED', payload }));
  const timestamp = String(Date.now());
  const headers = {
    'x-service-timestamp': timestamp,
    'x-service-signature': signWebhook(WEBHOOK_SECRET, timestamp, body),
  };
  await until('the event is acknowledged', async () => {
    return (await fetch(`${shared.service.url}/webhooks/platform`, { method: 'POST', headers, body })).status === 204;
  });
  await until('the event is processed', async () => {
    const open = 'SELECT 1 FROM webhook_deliveries WHERE due_at IS NOT NULL';
    return (await shared.mirror.sql(open)).length === 0;
  });
}

describe('a client whose email belongs to a clinician’s account', () => {
  const email = 'dr.osei@example.org';

  test('is not linked to it when the platform told the role before', async () => {
    const { userId } = stranger('HealthcareProvider', email);
    await tell({ userId, role: 'HealthcareProvider' });
    const refused = await put('clients/patient', { email });
    expect([...verdict(refused), refused.platformUserId]).toEqual(['needs-review', 'role-mismatch', null]);
    await remove('clients/patient');
    expect(shared.mirror.simulator.state.users.find(userId)).toBeDefined();
  });

  test('is unlinked when the platform tells the role later', async () => {
    const { userId } = stranger('HealthcareProvider', email);
    expect((await put('clients/patient', { email })).platformUserId).toBe(userId);
    await tell({ userId, role: 'HealthcareProvider' });
    const unlinked = await get('clients/patient');
    expect([...verdict(unlinked), unlinked.platformUserId]).toEqual(['needs-review', 'role-mismatch', null]);
  });

  test('and whose role is never told is not deleted by itself; delete or ignore says which', async () => {
    const { userId } = stranger('HealthcareProvider', email);
    await put('clients/patient', { email });
    expect(verdict(await remove('clients/patient'))).toEqual(['needs-review', 'delete-linked']);
    await resolve('clients/patient', { action: 'ignore' });
    expect(verdict(await settled('clients/patient'))).toEqual(['deleted', null]);
    expect(shared.mirror.simulator.state.users.find(userId)).toBeDefined();
    expect(shared.mirror.arrivals('deleteUser')).toBe(0);
  });
});

describe('a linked client', () => {
  const email = 'noor@example.org';

  test('is deleted by a human being’s word, and by itself once the platform told that it is a client', async () => {
    const first = stranger('Client', email);
    await put('clients/noor', { email });
    await remove('clients/noor');
    await resolve('clients/noor', { action: 'delete' });
    expect(verdict(await settled('clients/noor'))).toEqual(['deleted', null]);
    expect(shared.mirror.simulator.state.users.find(first.userId)).toBeUndefined();

    const second = stranger('Client', email);
    await put('clients/noor', { email });
    expect(verdict(await remove('clients/noor'))).toEqual(['needs-review', 'delete-linked']);
    await tell({ userId: second.userId, role: 'Client' });
    expect(verdict(await settled('clients/noor'))).toEqual(['deleted', null]);
    expect(shared.mirror.simulator.state.users.find(second.userId)).toBeUndefined();
  });

  test('says that it is linked, and that its names there are unknown', async () => {
    stranger('Client', email);
    const { origin, sync } = await put('clients/noor', { email });
    expect([origin, sync.notPushable]).toEqual(['linked', []]);
    expect(sync.unknownThere).toEqual(['firstName', 'lastName', 'primaryProvider']);
  });
});

test('a client whose primary provider changes says that the platform can not be told', async () => {
  await put('providers/other', { email: 'other@example.org' });
  expect((await put('clients/noor', { providers: ['home', 'other'] })).sync.notPushable).toEqual([]);
  const { origin, sync } = await put('clients/noor', { providers: ['other', 'home'] });
  expect([origin, sync.state, sync.notPushable]).toEqual(['created', 'synced', ['primaryProvider']]);
});

test('create makes no second user of somebody who has one', async () => {
  await put('providers/other', { email: 'other@example.org' });
  await put('clients/noor');
  shared.mirror.trouble({ operation: 'setClientProviders', kind: 'status', status: 400 });
  expect(verdict(await put('clients/noor', { providers: ['other'] }))).toEqual(['failed', 'rejected']);
  const answer = await resolve('clients/noor', { action: 'create' });
  expect([answer.status, JSON.stringify(answer.body)]).toEqual([409, expect.stringContaining('has-platform-user')]);
  expect(shared.mirror.usersOf('noor')).toHaveLength(1);
});

test('a create whose answer names another user than an event did is for a human being to settle', async () => {
  shared.mirror.hold({ operation: 'createClient' });
  await begin('clients/noor');
  await until('the create has arrived', () => shared.mirror.usersOf('noor').length === 1);
  const other = shared.mirror.simulator.state.users.add({
    role: 'Client',
    firstName: 'N',
    lastName: 'H',
    partnerUserId: 'noor',
    providerUserIds: [],
  });
  await tell({ userId: other.userId, externalUserId: 'noor', role: 'Client' });
  shared.mirror.release();
  const torn = await until('the create is answered', async () => {
    const view = await get('clients/noor');
    return view.sync.state === 'needs-review' ? view : undefined;
  });
  expect([torn.sync.error?.code, torn.platformUserId]).toEqual(['second-user', other.userId]);
  const unknown = await shared.service.call<{ items: { platformUserId: string }[] }>(
    'GET',
    '/v1/people/unknown-to-ehr',
  );
  const made = shared.mirror.usersOf('noor').find(({ userId }) => userId !== other.userId);
  expect(unknown.body.items.map(({ platformUserId }) => platformUserId)).toEqual([made?.userId]);
});
