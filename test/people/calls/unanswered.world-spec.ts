import { importsIn } from '../../imports/imports.js';
import { clientLine, clientsCsv } from '../../support/bulk.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { begin, put, settled, verdict, verdicts, verdictOf, callsDuring, health } = peopleOf(world);
const { imported } = importsIn(world);

const SYNCED = ['synced', null];
const UNKNOWN = ['needs-review', 'create-unknown'];
const lose = (operation: string, match: Record<string, string> = {}) =>
  world.platform.injectFault({ operation, kind: 'status', status: 503, count: null, match });
const creates = (operation = 'createClient') => world.platform.arrivals(operation);
const passing = async (span: '6 s' | '16 s' | '31 s' | '2 min' | '61 min') => {
  await world.advance(span);
  await world.settle();
};
const many = (count: number, kind: string) => Array.from({ length: count }, (_, n) => `${kind}/n-${n}`);
const states = async (paths: string[], state: string) =>
  (await verdicts(paths)).filter(([seen]) => seen === state).length;

beforeEach(() => put('providers/home'));

describe('five people without an answer', () => {
  test('pause all calls, and one check at a time probes them', async () => {
    lose('*');
    const paths = many(16, 'providers');
    for (const path of paths) await begin(path);
    const first = await callsDuring(() => world.settle());
    // Four are in flight together, so at most three others follow the fourth one.
    expect(first.length).toBeLessThanOrEqual(8);
    expect((await health('platform'))?.reason).toContain('gives no readable answer: user management');
    expect(await callsDuring(() => passing('6 s'))).toEqual(['checkUser']);
    await world.restart();
    expect(await callsDuring(() => world.settle())).toEqual([]);
    expect(await callsDuring(() => passing('16 s'))).toEqual(['checkUser']);
    world.platform.release();
    await passing('61 min');
    expect(await verdicts(paths)).toEqual(paths.map(() => SYNCED));
    expect((await health('platform'))?.status).toBe('ok');
  });

  test('are not reached by one person whose calls always fail', async () => {
    lose('createClient', { partnerUserId: 'poison' });
    await begin('clients/poison', { email: 'poison@example.org' });
    for (let times = 0; times < 8; times += 1) await passing('2 min');
    expect(creates()).toBeGreaterThanOrEqual(3);
    expect((await health('platform'))?.status).toBe('ok');
    expect(verdictOf(await put('clients/well'))).toEqual(SYNCED);
  });
});

describe('an operation without answers, while others work,', () => {
  test('pauses by itself, and loses at most twelve creates without an email before', async () => {
    lose('createClient');
    const lost = many(20, 'clients');
    for (const path of lost) await begin(path);
    await world.settle();
    expect(await states(lost, 'needs-review')).toBeLessThanOrEqual(12);
    // The API is probed first, by a check, which loses nothing.
    expect((await callsDuring(() => passing('6 s')))[0]).toBe('checkUser');
    expect(verdictOf(await put('providers/well'))).toEqual(SYNCED);
    expect((await health('platform'))?.reason).toContain('gives no readable answer: createClient');
    const calls = creates();
    await passing('31 s');
    expect(creates() - calls).toBeLessThanOrEqual(1);
    expect(verdictOf(await put('providers/also'))).toEqual(SYNCED);

    world.platform.release();
    await passing('31 s');
    await passing('31 s');
    const reviews = (await verdicts(lost)).filter(([state]) => state === 'needs-review');
    expect(reviews).toEqual(reviews.map(() => UNKNOWN));
    expect(await states(lost, 'synced')).toBe(lost.length - reviews.length);
    expect((await health('platform'))?.status).toBe('ok');
  });

  test('is probed with a person that has an email, because its user can be looked up', async () => {
    lose('createClient');
    const lost = many(8, 'clients');
    for (const path of lost) await begin(path);
    await world.settle();
    const before = await states(lost, 'needs-review');
    await begin('clients/known', { email: 'known@example.org' });
    await world.settle();
    const calls = await callsDuring(() => passing('16 s'));
    expect(calls).toEqual(['checkUser', 'createClient']);
    expect(await states(lost, 'needs-review')).toBe(before);
    expect(await verdict('clients/known')).toEqual(['pending', 'outcome-unknown']);
  });

  test('is not told from one person: a person fails after a day in which it worked for others', async () => {
    await put('clients/list');
    await put('providers/second');
    lose('setClientProviders', { partnerUserId: 'list' });
    await begin('clients/list', { providers: ['second'] });
    for (let hours = 0; hours < 30; hours += 1) await passing('61 min');
    await put('clients/well');
    await put('clients/well', { providers: ['second'] });
    await passing('61 min');
    expect(await verdict('clients/list')).toEqual(['failed', 'unanswered']);
    expect(await callsDuring(() => passing('61 min'))).toEqual([]);
    world.platform.release();
    await begin('clients/list', { providers: ['second'] });
    expect(verdictOf(await settled('clients/list'))).toEqual(SYNCED);
  });
});

test('a person waits for a day of lost creates, and continues automatically', async () => {
  lose('createProvider');
  await begin('providers/never');
  for (let hours = 0; hours < 24; hours += 1) await passing('61 min');
  expect((await verdict('providers/never'))[0]).toBe('pending');
  expect(creates('createProvider')).toBeGreaterThan(10);
  world.platform.release();
  for (const _step of ['lookup', 'create']) await passing('61 min');
  expect(await verdict('providers/never')).toEqual(SYNCED);
});

test('clients of an import that get no answer are not lost one after the other', async () => {
  lose('createClient');
  const lines = Array.from({ length: 30 }, (_, n) => clientLine(`c-${n}`, ['home']));
  await imported('kind=clients', [clientsCsv(lines)]).catch(() => undefined);
  expect(creates()).toBeLessThanOrEqual(12);
});
