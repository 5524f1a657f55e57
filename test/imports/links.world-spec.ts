import { randomUUID } from 'node:crypto';
import type { UserRole } from '../../src/platform/contract/wire-types.js';
import { peopleOf } from '../people/mirroring.js';
import { providerLine, providersCsv } from '../support/bulk.js';
import { useWorld } from '../world/use-world.js';
import { importsIn } from './imports.js';

const world = useWorld();
const { start, imported, planned, prepared, ended, map, settled, show, rows, outcomes, transition } = importsIn(world);
const { get, begin, put, remove, resolve, verdict, verdictOf, callsDuring } = peopleOf(world);

const csv = (name: string, ...lines: string[]) => ({ name, type: 'text/csv', content: lines.join('\n') });
const clients = (...lines: string[]) =>
  csv('clients.csv', 'externalId,email,firstName,lastName,providers,platformUserId', ...lines);
const links = (...lines: string[]) => csv('links.csv', 'kind,externalId,platformUserId', ...lines);

/** Adds a user as another integration did. */
const addUser = (role: UserRole, more: { email?: string } = {}): string =>
  world.platform.simulator.state.users.add({ role, firstName: 'M', lastName: 'M', providerUserIds: [], ...more })
    .userId;
const user = (id: string) => world.platform.simulator.state.users.find(id);
const peopleCsv = async () => (await world.call('GET', '/v1/people.csv')).text;

/** Codes and hints of rows by external id. */
const codes = async (id: string) => (await rows(id)).map(({ externalId, code, field }) => [externalId, code, field]);

describe('platformUserId', () => {
  test('links a new client instead of creating it, and its list is sent', async () => {
    const home = await put('providers/home');
    const userId = addUser('Client');
    const calls = await callsDuring(async () => {
      const view = await imported('', [clients(`c-1,,Ann,Ash,home,${userId}`)]);
      expect(view).toMatchObject({ counts: { linked: 1 }, calls: { made: 1 } });
    });
    expect(calls).toEqual(['setClientProviders']);
    expect(await get('clients/c-1')).toMatchObject({ platformUserId: userId, origin: 'linked' });
    expect(user(userId)?.providerUserIds).toEqual([home.platformUserId]);
  });

  test('links a new provider without a call', async () => {
    const userId = addUser('HealthcareProvider', { email: 'ada@example.org' });
    const file = csv('providers.csv', 'id,email,first,last,Platform User ID', `p-1,ada@example.org,Ada,Osei,${userId}`);
    const calls = await callsDuring(async () => expect((await imported('', [file])).counts.linked).toBe(1));
    expect([calls, (await get('providers/p-1')).platformUserId]).toEqual([[], userId]);
  });

  test('is stored as it was written', async () => {
    await put('providers/home');
    const userId = randomUUID().toUpperCase();
    await prepared('', [clients(`c-1,,Ann,Ash,home,${userId}`)]);
    expect((await get('clients/c-1')).platformUserId).toBe(userId);
  });

  test('must be a UUID', async () => {
    await put('providers/home');
    const { id } = await imported('', [clients('c-1,,Ann,Ash,home,42')]);
    expect(await codes(id)).toEqual([['c-1', 'bad-platform-user-id', 'platformUserId']]);
  });

  test('changes nothing if the person has this user already', async () => {
    await put('providers/home');
    const { platformUserId } = await put('clients/c-1');
    const calls = await callsDuring(async () => {
      const view = await imported('', [clients(`c-1,,Pia,Ruiz,home,${platformUserId}`)]);
      expect(view.counts.unchanged).toBe(1);
    });
    expect([calls, (await get('clients/c-1')).origin]).toEqual([[], 'created']);
  });

  test('is rejected if the person has another user', async () => {
    await put('providers/home');
    const { platformUserId } = await put('clients/c-1');
    const { id } = await imported('', [clients(`c-1,,Pia,Ruiz,home,${addUser('Client')}`)]);
    expect(await codes(id)).toEqual([['c-1', 'linked-otherwise', 'platformUserId']]);
    expect((await get('clients/c-1')).platformUserId).toBe(platformUserId);
  });

  test('is rejected if the user belongs to another person', async () => {
    await put('providers/home');
    const { platformUserId } = await put('clients/c-1');
    const { id } = await imported('', [clients(`c-2,,Ann,Ash,home,${platformUserId}`)]);
    expect(await codes(id)).toEqual([['c-2', 'platform-user-taken', 'platformUserId']]);
  });

  test('is rejected if an earlier row names the user', async () => {
    await put('providers/home');
    const userId = addUser('Client');
    const lines = [`c-1,,Ann,Ash,home,${userId}`, `c-2,,Ben,Bay,home,${userId}`];
    const { id } = await imported('', [clients(...lines)]);
    expect(await outcomes(id)).toEqual([
      ['c-1', 'linked', null],
      ['c-2', 'rejected', 'platform-user-taken'],
    ]);
  });

  test('counts if one of several equal rows has it; two different ones are a conflict', async () => {
    await put('providers/home');
    const [one, two] = [addUser('Client'), addUser('Client')];
    const lines = ['c-1,,Ann,Ash,home,', `c-1,,Ann,Ash,home,${one}`, `c-1,,Ann,Ash,home,${two}`];
    const { id } = await imported('', [clients(...lines)]);
    expect((await outcomes(id)).map(([, outcome, code]) => [outcome, code])).toEqual([
      ['skipped', 'repeated'],
      ['linked', null],
      ['rejected', 'duplicate-id'],
    ]);
    expect((await get('clients/c-1')).platformUserId).toBe(one);
  });

  test('resolves a client whose create got no answer', async () => {
    await put('providers/home');
    world.platform.injectFault({ operation: 'createClient', kind: 'commit-then-cut' });
    expect(verdictOf(await put('clients/c-1'))).toEqual(['needs-review', 'create-unknown']);
    const [made] = world.platform.usersOf('c-1');
    await imported('', [links(`client,c-1,${made?.userId}`)]);
    expect(await get('clients/c-1')).toMatchObject({ platformUserId: made?.userId, firstName: 'Pia' });
    expect([await verdict('clients/c-1'), world.platform.usersOf('c-1')]).toEqual([['synced', null], [made]]);
  });

  test('is skipped while a call may still create another user', async () => {
    await put('providers/home');
    const plan = await planned('dryRun=true', [clients(`c-1,,Pia,Ruiz,home,${addUser('Client')}`)]);
    await begin('clients/c-1');
    const call = await world.untilHeld({ operation: 'createClient' });
    const later = await start('', [clients(`c-1,,Pia,Ruiz,home,${addUser('Client')}`)]);
    await world.work.imports();
    expect(await outcomes(later)).toEqual([['c-1', 'skipped', 'call-under-way']]);
    await call.answer();
    await transition(plan.id, 'apply');
    await settled(plan.id);
    expect(await outcomes(plan.id)).toEqual([['c-1', 'skipped', 'changed-since-read']]);
    expect(world.platform.usersOf('c-1')).toHaveLength(1);
  });

  test('is skipped if the person got another user after the plan', async () => {
    await put('providers/home');
    const { id } = await prepared('', [clients('c-1,,Ann,Ash,home,')]);
    const plan = await planned('dryRun=true', [clients(`c-1,,Ann,Ash,home,${addUser('Client')}`)]);
    await settled(id);
    await ended(plan.id, 'apply');
    expect(await outcomes(plan.id)).toEqual([['c-1', 'skipped', 'linked-otherwise']]);
  });
});

describe('a client linked by a file', () => {
  beforeEach(() => put('providers/home'));

  test('is deleted only after a confirmation', async () => {
    const userId = addUser('Client');
    await imported('', [clients(`c-1,,Ann,Ash,home,${userId}`)]);
    expect(verdictOf(await remove('clients/c-1'))).toEqual(['needs-review', 'delete-linked']);
    expect(user(userId)?.role).toBe('Client');
    await resolve('clients/c-1', { action: 'delete' });
    await world.settle();
    expect([await verdict('clients/c-1'), user(userId)]).toEqual([['deleted', null], undefined]);
  });

  test('is deleted without one if the platform reported that the user is a client', async () => {
    const userId = addUser('Client');
    world.platform.simulator.state.deliveries.send({ eventType: 'USER_CREATED', payload: { userId, role: 'Client' } });
    await world.settle();
    await imported('', [clients(`c-1,,Ann,Ash,home,${userId}`)]);
    expect(verdictOf(await remove('clients/c-1'))).toEqual(['deleted', null]);
  });

  test('is deleted by a snapshot whose guard was confirmed', async () => {
    const userId = addUser('Client');
    await imported('', [clients(`c-1,,Ann,Ash,home,${userId}`, 'c-2,,Ben,Bay,home,')]);
    const plan = await planned('mode=snapshot', [clients('c-2,,Ben,Bay,home,')]);
    expect((await transition(plan.id, 'apply')).status).toBe(409);
    expect((await ended(plan.id, 'apply', ['deletes'])).deletes).toEqual({ deleted: 1 });
    expect(user(userId)).toBeUndefined();
  });
});

describe('a file of links without names', () => {
  test('keeps names and email of people who are known', async () => {
    await put('providers/home');
    await begin('clients/c-1', { firstName: 'Ann', lastName: 'Ash', email: 'ann@example.org' });
    const userId = addUser('Client');
    const { id } = await prepared('', [links(`client,c-1,${userId}`)]); // before its create is sent
    await world.settle();
    expect((await show(id)).counts.linked).toBe(1);
    expect(await get('clients/c-1')).toMatchObject({
      ...{ firstName: 'Ann', lastName: 'Ash', email: 'ann@example.org', providers: ['home'], platformUserId: userId },
    });
  });

  test('rejects people who are unknown', async () => {
    const { id } = await imported('', [links(`client,c-1,${addUser('Client')}`, `provider,p-1,${randomUUID()}`)]);
    expect(await codes(id)).toEqual([
      ['c-1', 'missing-field', 'firstName'],
      ['p-1', 'missing-field', 'email'],
    ]);
    expect((await rows(id))[0]?.hint).toContain('This person is unknown');
  });

  test('needs no kind if its people are all of one kind', async () => {
    await imported('', [providersCsv([providerLine('p-1')])]);
    const { platformUserId } = await get('providers/p-1');
    const view = await imported('kind=providers', [csv('links.csv', 'ID,Platform User ID', `p-1,${platformUserId}`)]);
    expect(view.counts).toMatchObject({ total: 1, unchanged: 1 });
  });
});

describe('GET /v1/people.csv', () => {
  test('changes nothing when it is imported again', async () => {
    await put('providers/home');
    await put(`clients/${encodeURIComponent('=1+1')}`);
    await put(`clients/${encodeURIComponent("'quoted, “id”")}`);
    await put('clients/c-1', { email: 'c-1@example.org' });
    const [before, file] = [await get('clients/c-1'), await peopleCsv()];
    const calls = await callsDuring(async () => {
      const view = await imported('', [csv('people.csv', file)]);
      expect(view.counts).toMatchObject({ total: 4, unchanged: 4 });
    });
    expect([calls, await peopleCsv(), await get('clients/c-1')]).toEqual([[], file, before]);
  });

  test('deletes no one as a snapshot', async () => {
    await put('providers/home');
    await put(`clients/${encodeURIComponent('=1+1')}`);
    const plan = await planned('mode=snapshot', [csv('people.csv', await peopleCsv())]);
    expect(plan.planned).toEqual({ unchanged: 2 });
  });

  test('links the people of a restored database to their users', async () => {
    await put('providers/home');
    const { platformUserId } = await put('clients/c-1');
    const file = await peopleCsv();
    await world.sql(
      `UPDATE people SET platform_user_id = NULL, origin = NULL, state = 'needs-review', review = 'create-unknown',
         error_code = 'create-unknown', step = NULL, due_at = NULL WHERE external_id = 'c-1'`,
    );
    const calls = await callsDuring(() => imported('', [csv('people.csv', file)]));
    expect([calls, (await get('clients/c-1')).platformUserId]).toEqual([['setClientProviders'], platformUserId]);
    expect(await verdict('clients/c-1')).toEqual(['synced', null]);
  });
});

test('a column of another name can be mapped to platformUserId', async () => {
  await put('providers/home');
  const userId = addUser('Client');
  const id = await start('', [csv('clients.csv', 'ID,MRN,First,Last,Provider,Account', `1,7,Ann,Ash,home,${userId}`)]);
  await map(id, { externalId: 'ID', platformUserId: 'Account' });
  await settled(id);
  expect((await show(id)).counts.linked).toBe(1);
});
