import { CallsRepository } from '../../../src/people/store/calls.repository.js';
import { WORDS } from '../../../src/words/words.js';
import { importsIn } from '../../imports/imports.js';
import { many, providerLine, providersCsv } from '../../support/bulk.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { begin, beginRemoval, put, remove, get, resolve, settled, verdict, verdicts, verdictOf, callsDuring } =
  peopleOf(world);

const { start } = importsIn(world);

const SYNCED = ['synced', null];
const passing = async (span: '16 s' | '2 min' | '61 min') => {
  await world.advance(span);
  await world.settle();
};
const idOf = async (externalId: string) =>
  (await world.sql<{ id: string }>('SELECT id FROM people WHERE external_id = $1', [externalId]))[0]?.id;

beforeEach(() => put('providers/home'));

describe('a person whose data cannot be decrypted', () => {
  beforeEach(async () => {
    for (const path of ['providers/bad', 'providers/good']) await begin(path);
    await world.sql(`UPDATE people SET profile = 'x' WHERE external_id = 'bad'`);
    await world.settle();
  });

  test('backs off alone, with a code, and others are mirrored', async () => {
    expect(verdictOf(await get('providers/good'))).toEqual(SYNCED);
    const tries = jest.spyOn(world.get(CallsRepository), 'settle');
    expect(
      await callsDuring(async () => {
        for (let times = 0; times < 30; times += 1) await passing('2 min');
      }),
    ).toEqual([]);
    expect(tries.mock.calls.length).toBeLessThanOrEqual(6); // after 15 s, 1 min, 5 min, 30 min, then hourly
    const [row] = await world.sql(`SELECT state, error_code FROM people WHERE external_id = 'bad'`);
    expect(row).toEqual({ state: 'pending', error_code: 'unreadable' });
  });

  test('ends with the next PUT or DELETE', async () => {
    expect(verdictOf(await put('providers/bad'))).toEqual(SYNCED);
    await world.sql(`UPDATE people SET profile = 'x' WHERE external_id = 'bad'`);
    expect(verdictOf(await remove('providers/bad'))).toEqual(['deleted', null]);
  });
});

test('people of an import pass the one whose data cannot be decrypted', async () => {
  const hold = (held: boolean) => world.call('PUT', '/v1/sending', { body: { held, reason: 'CASE-1' } });
  await hold(true);
  const ids = ['bad', ...many(20, 'good')];
  await start('kind=providers', [providersCsv(ids.map((id) => providerLine(id)))]);
  await world.settle();
  await world.sql(`UPDATE people SET profile = 'x' WHERE external_id = 'bad'`);
  await hold(false);
  await world.settle();
  expect(await verdicts(many(20, 'good').map((id) => `providers/${id}`))).toEqual(many(20, 'good').map(() => SYNCED));
});

describe('a person whose work throws', () => {
  test('backs off alone, with a code that words explain, and continues once it works', async () => {
    for (const path of ['providers/bad', 'providers/good']) await begin(path);
    const bad = await idOf('bad');
    const calls = world.get(CallsRepository);
    const take = calls.take.bind(calls);
    const taking = jest.spyOn(calls, 'take').mockImplementation(async (id, callId) => {
      if (id === bad) throw new TypeError('a bug');
      return take(id, callId);
    });
    await world.settle();
    expect(await verdicts(['providers/bad', 'providers/good'])).toEqual([['pending', 'internal'], SYNCED]);
    for (let times = 0; times < 30; times += 1) await passing('2 min');
    expect(taking.mock.calls.filter(([id]) => id === bad).length).toBeLessThanOrEqual(6);
    expect((await get('providers/bad')).sync.error?.message).toBe(WORDS.personCode.internal.hint);
    taking.mockRestore();
    await passing('61 min');
    expect(await verdict('providers/bad')).toEqual(SYNCED);
  });
});

describe('a call in flight of a client whose provider goes or comes', () => {
  test('a client waits for a provider that failed, and continues with it', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400 });
    await begin('providers/failed');
    await begin('clients/c-1', { providers: ['failed'] });
    await world.settle();
    expect(await verdicts(['providers/failed', 'clients/c-1'])).toEqual([
      ['failed', 'rejected'],
      ['waiting', 'provider-not-mirrored'],
    ]);
    await resolve('providers/failed', { action: 'retry' });
    expect(verdictOf(await settled('clients/c-1'))).toEqual(SYNCED);
  });

  test('a client that waits is deleted without a call', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'status', status: 400 });
    await begin('providers/failed');
    await begin('clients/c-1', { providers: ['failed'] });
    await world.settle();
    expect(await callsDuring(() => remove('clients/c-1'))).toEqual([]);
    expect(await verdict('clients/c-1')).toEqual(['deleted', null]);
  });

  test('a deletion that is withdrawn keeps the user, and one that follows a PUT at once is applied', async () => {
    await put('clients/c-1');
    await beginRemoval('clients/c-1');
    await begin('clients/c-1');
    await world.settle();
    expect([await verdict('clients/c-1'), world.platform.arrivals('deleteUser')]).toEqual([SYNCED, 0]);
    await begin('clients/c-1', { firstName: 'Other' });
    await beginRemoval('clients/c-1');
    expect(verdictOf(await settled('clients/c-1'))).toEqual(['deleted', null]);
  });
});

test('a lost create whose data cannot be decrypted can be deleted, and its user goes once the key is back', async () => {
  world.platform.injectFault({ operation: 'createProvider', kind: 'commit-then-cut' });
  expect(verdictOf(await put('providers/lost'))).toEqual(['pending', 'outcome-unknown']);
  const unsealed = `UPDATE people SET unsettled_profile = $1 WHERE external_id = 'lost'`;
  const [kept] = await world.sql(`SELECT unsettled_profile AS profile FROM people WHERE external_id = 'lost'`);
  await world.sql(unsealed, ['x']);
  expect((await remove('providers/lost')).sync.state).toBe('deleting');
  await passing('2 min');
  expect(await verdict('providers/lost')).toEqual(['deleting', 'unreadable']);
  await world.sql(unsealed, [kept?.profile]);
  await passing('61 min');
  expect([await verdict('providers/lost'), world.platform.usersOf('lost')]).toEqual([['deleted', null], []]);
});
