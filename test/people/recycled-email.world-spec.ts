import type { PersonResponse } from '../../src/people/api/person-view.js';
import { importsIn } from '../imports/imports.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { put, remove, get, verdict, verdictOf, callsDuring, resolve, settled } = peopleOf(world);
const { imported, outcomes, planned, ended } = importsIn(world);

const email = 'frontdesk@example.org';
const TAKEN = ['needs-review', 'email-taken'];
const csv = (...rows: string[]) => [
  {
    name: 'clients.csv',
    type: 'text/csv',
    content: ['externalId,email,firstName,lastName,providers', ...rows].join('\n'),
  },
];
const [MOVED, NEWCOMER] = ['a,a@example.org,Pia,Ruiz,home', `b,${email},Bo,Lee,home`];

async function found(body: { email: string }): Promise<string[]> {
  const { body: page } = await world.call<{ items: PersonResponse[] }>('POST', '/v1/people/search', { body });
  return page.items.map(({ kind, externalId }) => `${kind} ${externalId}`);
}

/** Changes the email of an account, as the platform's support does. */
function changeOnPlatform(userId: string, to: string): void {
  const { users } = world.platform.simulator.state;
  const user = users.find(userId);
  if (!user) throw new Error('The platform has no such user.');
  users.remove(user);
  users.add({ ...user, email: to });
}

beforeEach(async () => {
  await put('providers/home');
});

describe('an email that moves to a new person', () => {
  test('leaves the newcomer in review without a call, because the account of the other one still has it', async () => {
    const { platformUserId } = await put('clients/a', { email });
    expect((await put('clients/a', { email: 'a@example.org' })).sync.notPushable).toEqual(['email']);
    const calls = await callsDuring(async () => {
      expect(verdictOf(await put('clients/b', { email }))).toEqual(TAKEN);
    });
    expect(calls).toEqual([]);
    expect((await get('clients/a')).platformUserId).toBe(platformUserId);
    expect(world.platform.usersOf('a')).toMatchObject([{ email }]);
  });

  test('leads to the person whose account has it, although that one has another email by now', async () => {
    await put('clients/a', { email });
    await put('clients/a', { email: 'a@example.org' });
    await put('clients/b', { email });
    expect(await found({ email })).toEqual(['client a', 'client b']);
    expect(await found({ email: 'a@example.org' })).toEqual(['client a']);
    const { message } = (await get('clients/b')).sync.error ?? {};
    expect(message).toMatch(/or on the platform.*no way to change.*POST \/v1\/people\/search/);
    expect(message).not.toContain(email);
  });

  test('is no obstacle once the newcomer has none', async () => {
    await put('clients/a', { email });
    await put('clients/a', { email: 'a@example.org' });
    await put('clients/b', { email });
    expect(verdictOf(await put('clients/b'))).toEqual(['synced', null]);
    expect(world.platform.usersOf('b')).toHaveLength(1);
  });

  test('is free for the newcomer once the other person is deleted, before or after', async () => {
    await put('clients/a', { email });
    await put('clients/a', { email: 'a@example.org' });
    await put('clients/b', { email });
    await remove('clients/a');
    expect(await verdict('clients/b')).toEqual(['synced', null]);
    await remove('clients/b');
    expect(verdictOf(await put('clients/c', { email }))).toEqual(['synced', null]);
    expect(world.platform.usersOf('c')).toMatchObject([{ email }]);
  });

  test.each([
    ['after', [MOVED, NEWCOMER]],
    ['before', [NEWCOMER, MOVED]],
  ])('in one file does the same if the newcomer comes %s the other person', async (_, lines) => {
    await put('clients/a', { email });
    const { id } = await imported('', csv(...lines));
    expect((await outcomes(id)).sort()).toEqual([
      ['a', 'updated', 'not-pushable'],
      ['b', 'needsReview', 'email-taken'],
    ]);
    expect(await verdict('clients/a')).toEqual(['synced', null]);
  });

  test('reaches the newcomer of a snapshot that leaves the other person out', async () => {
    await put('clients/a', { email });
    const { id } = await planned('mode=snapshot', csv(NEWCOMER));
    await ended(id, 'apply', ['deletes']);
    expect(await outcomes(id)).toEqual([
      ['b', 'created', null],
      ['a', 'deleted', null],
    ]);
  });

  test('is free for a retry once the platform has changed it, and until then names the account', async () => {
    const { platformUserId } = await put('clients/a', { email });
    await put('clients/a', { email: 'a@example.org' });
    expect(verdictOf(await put('clients/b', { email }))).toEqual(TAKEN);
    await resolve('clients/b', { action: 'retry' });
    expect(verdictOf(await settled('clients/b'))).toEqual(['needs-review', 'platform-user-taken']);
    changeOnPlatform(platformUserId ?? '', 'a@example.org');
    await resolve('clients/b', { action: 'retry' });
    expect(verdictOf(await settled('clients/b'))).toEqual(['synced', null]);
    expect(await verdict('clients/a')).toEqual(['synced', null]);
  });

  test('that the EHR states for both stays with the first on a retry', async () => {
    await put('clients/a', { email });
    await put('clients/b', { email });
    await resolve('clients/b', { action: 'retry' });
    expect(verdictOf(await settled('clients/b'))).toEqual(TAKEN);
  });

  test('that an account of another client keeps after a merge is free once the platform has changed it', async () => {
    const { platformUserId } = await put('clients/a', { email });
    await put('clients/survivor');
    await world.call('POST', '/v1/clients/a/merge', { body: { into: 'survivor' } });
    const taken = await put('clients/b', { email });
    expect([verdictOf(taken), taken.platformUserId]).toEqual([['needs-review', 'platform-user-taken'], null]);
    expect(taken.sync.error?.message).toMatch(/ask its support to change it, then resolve this one with "retry"/);
    const owner = await world.call('GET', `/v1/people/platform-users/${platformUserId}`);
    expect(owner.body).toMatchObject({ person: { kind: 'client', externalId: 'survivor' } });
    changeOnPlatform(platformUserId ?? '', 'a@example.org');
    await resolve('clients/b', { action: 'retry' });
    expect(verdictOf(await settled('clients/b'))).toEqual(['synced', null]);
    expect(world.platform.usersOf('b')).toMatchObject([{ email }]);
  });
});
