import { randomUUID } from 'node:crypto';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { type Mirror, useMirrors } from './support/service.js';

const newMirror = useMirrors();
let mirror: Mirror;
let service: Service;

beforeAll(async () => {
  mirror = await newMirror();
  service = await mirror.start();
  await put('providers/home', { email: 'home@example.org' });
});

async function put(path: string, more: object = {}): Promise<PersonResponse> {
  const names = { firstName: 'Pia', lastName: 'Ruiz', ...(path.startsWith('clients') && { providers: ['home'] }) };
  return (await service.call('PUT', `/v1/${path}`, { body: { ...names, ...more }, wait: 60 })).body;
}
const get = async (path: string) => (await service.call('GET', `/v1/${path}`)).body;

/** Delivers a signed USER_CREATED event and waits until it was looked at. */
async function tell(payload: { userId: string; externalUserId?: string; role: string }): Promise<void> {
  const body = Buffer.from(JSON.stringify({ eventType: 'USER_CREATED', payload }));
  const timestamp = String(Date.now());
  const headers = {
    'x-service-timestamp': timestamp,
    'x-service-signature': signWebhook('webhook-secret-of-the-tests', timestamp, body),
  };
  // A busy machine may not keep it in time: it is sent again, as the platform does.
  await until('the event is acknowledged', async () => {
    const { status } = await fetch(`${service.url}/webhooks/platform`, { method: 'POST', headers, body });
    expect([204, 503]).toContain(status);
    return status === 204;
  });
  await until('the event is processed', async () => {
    const open = await service.call<{ items: unknown[] }>('GET', '/v1/webhook-deliveries?state=received');
    return open.body.items.length === 0;
  });
}

async function unknownToEhr(): Promise<string[]> {
  const list = await service.call<{ items: { platformUserId: string }[] }>('GET', '/v1/people/unknown-to-ehr');
  return list.body.items.map(({ platformUserId }) => platformUserId);
}

/** A client whose create was done and whose answer was lost: it waits for a person. */
async function lostClient(externalId: string): Promise<string> {
  mirror.trouble({ operation: 'createClient', kind: 'commit-then-cut', match: { partnerUserId: externalId } });
  const { sync } = await put(`clients/${externalId}`);
  expect([sync.state, sync.error?.code]).toEqual(['needs-review', 'create-unknown']);
  return mirror.usersOf(externalId)[0]?.userId ?? '';
}

describe('USER_CREATED', () => {
  test('settles a client that waited for review after a lost answer', async () => {
    const userId = await lostClient('lost');
    await tell({ userId, externalUserId: 'lost', role: 'Client' });
    const person = await until('the client is synced', async () => {
      const view = await get('clients/lost');
      return view.sync.state === 'synced' ? view : undefined;
    });
    expect(person.platformUserId).toBe(userId);
    expect(mirror.usersOf('lost')).toHaveLength(1);
    expect(await unknownToEhr()).not.toContain(userId);
  });

  test('settles a client that was to be deleted meanwhile: its user is deleted', async () => {
    const userId = await lostClient('lost-and-deleted');
    await service.call('DELETE', '/v1/clients/lost-and-deleted');
    await tell({ userId, externalUserId: 'lost-and-deleted', role: 'Client' });
    await until('it is deleted', async () => (await get('clients/lost-and-deleted')).sync.state === 'deleted');
    expect(mirror.usersOf('lost-and-deleted')).toEqual([]);
  });

  test('of another role links nobody, and lists the user as unknown to the EHR', async () => {
    await lostClient('wrong-role');
    const userId = randomUUID();
    await tell({ userId, externalUserId: 'wrong-role', role: 'HealthcareProvider' });
    expect((await get('clients/wrong-role')).platformUserId).toBeNull();
    expect(await unknownToEhr()).toContain(userId);
  });

  test('without an external id, or with one that nobody named, is listed as unknown to the EHR', async () => {
    const [nameless, stranger] = [randomUUID(), randomUUID()];
    await tell({ userId: nameless, role: 'OrgAdmin' });
    await tell({ userId: stranger, externalUserId: 'never-named', role: 'Client' });
    expect(await unknownToEhr()).toEqual(expect.arrayContaining([nameless, stranger]));
  });

  test('never takes a mapped person from its user', async () => {
    const { platformUserId } = await put('clients/mapped');
    await tell({ userId: randomUUID(), externalUserId: 'mapped', role: 'Client' });
    expect((await get('clients/mapped')).platformUserId).toBe(platformUserId);
  });

  test('told again after a deletion does not link the deleted user to whoever comes back', async () => {
    const first = await put('clients/revived');
    await service.call('DELETE', '/v1/clients/revived', { wait: 60 });
    mirror.trouble({ operation: 'createClient', kind: 'commit-then-cut', match: { partnerUserId: 'revived' } });
    await put('clients/revived');
    await tell({ userId: first.platformUserId ?? '', externalUserId: 'revived', role: 'Client' });
    const back = await get('clients/revived');
    expect([back.platformUserId, back.sync.error?.code]).toEqual([null, 'create-unknown']);
  });
});
