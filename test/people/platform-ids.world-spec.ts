import { randomUUID } from 'node:crypto';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { PlatformUserResponse } from '../../src/people/api/person-view.js';
import type { UserRole } from '../../src/platform/contract/wire-types.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld({ platform: { processingEvents: false } });
const { put, remove, get, resolve, verdict, verdictOf, begin, settled } = peopleOf(world);

const SYNCED = ['synced', null];
const userOf = (externalId: string) => world.platform.usersOf(externalId)[0]?.userId ?? '';
const addUser = (role: UserRole, more: object = {}) =>
  world.platform.simulator.state.users.add({ role, firstName: 'M', lastName: 'M', providerUserIds: [], ...more })
    .userId;
const tell = async (payload: { userId: string; role: UserRole; externalUserId?: string }) => {
  world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload });
  await world.settle();
};
const known = async (userId: string) =>
  (await world.call<PlatformUserResponse>('GET', `/v1/people/platform-users/${userId}`)).body;
/** A session that the platform announces by webhooks and completes. */
function newSession(provider: string, client: string): string {
  const { state } = world.platform.simulator;
  const session = createSession(state, {
    providerUserId: userOf(provider),
    clientUserIds: [userOf(client)],
    noteTemplateIds: [SOAP],
    input: { kind: 'text', text: 'Sleeps badly.' },
    date: '2026-03-01T09:00:00.000Z',
    partnerAppointmentId: undefined,
  });
  while (session.nextStep) takeStep(state, session);
  return session.sessionId;
}

describe('a platform that writes its UUIDs in upper case', () => {
  beforeEach(async () => {
    world.platform.set({ idCase: 'upper' });
    await put('providers/home');
    await put('providers/second');
    await put('clients/c-1');
  });

  test('gets its own ids in every call about a person', async () => {
    const user = userOf('c-1');
    expect((await get('clients/c-1')).platformUserId).toBe(user);
    expect(user).toBe(user.toUpperCase());
    expect(verdictOf(await put('clients/c-1', { providers: ['second', 'home'] }))).toEqual(SYNCED);
    expect(world.platform.usersOf('c-1')).toMatchObject([{ providerUserIds: [userOf('second'), userOf('home')] }]);
    expect(verdictOf(await remove('clients/c-1'))).toEqual(['deleted', null]);
    expect(userOf('c-1')).toBe('');
  });

  test('has its sessions shown with their people, exported, and erased with the client', async () => {
    await world.restart({ ERASE_NOTES_OF_DELETED_CLIENTS: 'erase' });
    const sessionId = newSession('home', 'c-1');
    await world.settle();
    const { body: session } = await world.call<SessionResponse>('GET', `/v1/sessions/${sessionId}`);
    expect(session).toMatchObject({ sessionId, provider: 'home', clients: ['c-1'] });
    expect(session.notesRevision).toBe(1);
    const { text } = await world.call('GET', '/v1/clients/c-1/export');
    expect(text).toContain(session.id);
    await remove('clients/c-1');
    const { body } = await world.call<{ documents: object[] }>('GET', `/v1/sessions/${session.id}/notes`);
    expect(body.documents).toMatchObject([{ notes: [], removedAt: expect.any(String) }]);
  });

  test('gets a session and its update with the ids as it writes them', async () => {
    const request = { provider: 'home', client: 'c-1', noteTemplateIds: [SOAP], input: { text: { text: 'Hello.' } } };
    const body = { ...request, partnerAppointmentId: 'a-1' };
    const { status, body: made } = await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 });
    expect([status, made.provider, made.clients]).toEqual([201, 'home', ['c-1']]);
    const [session] = world.platform.simulator.state.sessions.list();
    expect(session).toMatchObject({ providerUserId: userOf('home'), clientUserIds: [userOf('c-1')] });
    if (session) while (session.nextStep) takeStep(world.platform.simulator.state, session);
    await world.settle();
    const update = { input: { text: 'Better.' } };
    expect((await world.call('PATCH', `/v1/sessions/${made.id}`, { body: update })).status).toBe(200);
  });
});

describe('a manual link', () => {
  beforeEach(async () => {
    await put('providers/home');
    world.platform.injectFault({ operation: 'createClient', kind: 'status', status: 503 });
    expect(
      await begin('clients/lost')
        .then(() => settled('clients/lost'))
        .then(verdictOf),
    ).toEqual(['needs-review', 'create-unknown']);
  });
  const link = async (platformUserId: unknown) =>
    resolve('clients/lost', { action: 'link', platformUserId }) as Promise<{ status: number; body: object }>;

  test.each(['nonsense', 'u-1', '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5', '{6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b}'])(
    'is rejected for %s, which is not in the form of the platform’s ids',
    async (id) => {
      expect(await link(id)).toMatchObject({ status: 400, body: { pointer: '/platformUserId' } });
      expect(await verdict('clients/lost')).toEqual(['needs-review', 'create-unknown']);
    },
  );

  test('gives the person its user', async () => {
    const userId = addUser('Client', { partnerUserId: 'lost' });
    expect((await link(userId)).status).toBe(200);
    expect(verdictOf(await settled('clients/lost'))).toEqual(SYNCED);
  });

  test('names who is linked to the user already', async () => {
    await put('clients/twin');
    expect(await link(userOf('twin'))).toMatchObject({
      status: 409,
      body: { type: 'urn:notebridge:problem:platform-user-taken', kind: 'client', externalId: 'twin' },
    });
  });

  test('can be checked before: what is known of the user, and whose it is', async () => {
    const nothing = {
      role: null,
      externalUserId: null,
      seenAt: null,
      deleted: false,
      person: null,
      formerPerson: null,
    };
    const stranger = randomUUID();
    expect(await known(stranger)).toMatchObject({ status: 404, type: 'urn:notebridge:problem:unknown-platform-user' });
    const admin = addUser('OrgAdmin');
    await tell({ userId: admin, role: 'OrgAdmin', externalUserId: 'boss' });
    expect(await known(admin)).toEqual({
      ...nothing,
      platformUserId: admin,
      role: 'OrgAdmin',
      externalUserId: 'boss',
      seenAt: expect.any(String),
    });
    await put('clients/twin');
    const twin = userOf('twin');
    const person = { kind: 'client', externalId: 'twin' };
    expect(await known(twin)).toEqual({ ...nothing, platformUserId: twin, role: 'Client', person });
    await remove('clients/twin');
    expect(await known(twin)).toMatchObject({ role: null, deleted: true, person: null, formerPerson: person });
  });
});
