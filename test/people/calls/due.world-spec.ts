import { PrismaService } from '../../../src/database/prisma.service.js';
import { DependentsRepository } from '../../../src/people/store/dependents.repository.js';
import { DuePeopleRepository } from '../../../src/people/store/due-people.repository.js';
import { Feeder, QUEUE_LENGTH } from '../../../src/queue/work/feeder.js';
import { WorkQueues } from '../../../src/queue/work/work-queues.js';
import { importsIn } from '../../imports/imports.js';
import { many, providerLine, providersCsv } from '../../support/bulk.js';
import { useWorld } from '../../world/use-world.js';
import { peopleOf } from '../mirroring.js';

const world = useWorld();
const { begin, put, remove, verdict, verdicts, verdictOf } = peopleOf(world);
const { prepared, transition, show } = importsIn(world);

const SYNCED = ['synced', null];
/** Applies an import of providers without any call. @returns its id */
async function imported(count: number, prefix: string): Promise<string> {
  const file = providersCsv(many(count, prefix).map((id) => providerLine(id)));
  return (await prepared('kind=providers', [file])).id;
}
/** The people with a user, in the order of their creation. */
const created = () => world.platform.simulator.state.users.list().map(({ partnerUserId }) => partnerUserId);
const waiting = () => world.get(WorkQueues).of('people').waiting();
const due = () => world.get(DuePeopleRepository).round();

test('a person that someone waits for comes before the people of imports that were due earlier', async () => {
  await imported(15, 'i');
  await world.get(Feeder).round();
  await world.advance('1 s');
  await begin('providers/now');
  await world.settle();
  expect(created()).toHaveLength(16);
  // At most as many calls as run at a time came before.
  expect(created().indexOf('now')).toBeLessThan(8);
});

test('the providers that such a client waits for come first, too', async () => {
  await imported(15, 'i');
  await world.get(Feeder).round();
  await begin('clients/now', { providers: ['i-15'] });
  await world.settle();
  expect(created().indexOf('i-15')).toBeLessThan(8);
  expect(created().indexOf('now')).toBeLessThan(13);
});

test('the queue stays short, and takes a person that someone waits for although it is full', async () => {
  await imported(60, 'i');
  await world.get(Feeder).round();
  expect((await waiting())?.size).toBe(QUEUE_LENGTH);
  await begin('providers/now');
  await world.get(Feeder).round();
  expect([...((await waiting())?.values() ?? [])].filter(({ priority }) => priority === 0)).toHaveLength(1);
  expect((await waiting())?.size).toBe(QUEUE_LENGTH + 1);
});

test('of a paused import nothing is due, and its people that wait in the queue make no call', async () => {
  const id = await imported(60, 'i');
  await world.get(Feeder).round();
  await transition(id, 'pause');
  expect(await due()).toEqual([]);
  await world.settle();
  expect([created(), world.platform.arrivals(), (await waiting())?.size]).toEqual([[], 0, 0]);
  await transition(id, 'resume');
  expect(await due()).toHaveLength(QUEUE_LENGTH);
});

test('people of a paused import do not stand in front of another import', async () => {
  await transition(await imported(60, 'first'), 'pause');
  await world.advance('1 s');
  const second = await imported(3, 'second');
  await world.settle();
  expect((await show(second)).state).toBe('completed');
  expect(created().sort()).toEqual(['second-1', 'second-2', 'second-3']);
});

test('a person that the EHR PUTs is mirrored although its import is paused', async () => {
  await transition(await imported(3, 'i'), 'pause');
  expect(verdictOf(await put('providers/i-2'))).toEqual(SYNCED);
  expect(created()).toEqual(['i-2']);
});

test('a person keeps its place between its calls, so that an import does not make all its checks first', async () => {
  await imported(5, 'first');
  await world.advance('1 s');
  await imported(5, 'second');
  const [{ id } = {}] = await world.sql(
    `UPDATE people SET checked_absent_at = now(), step = 'createProvider' WHERE external_id = 'first-5' RETURNING id`,
  );
  const order = (await due()).map((row) => row.id);
  expect([order.length, order.indexOf(String(id)) < 5]).toEqual([10, true]);
});

test('a wiped queue loses no work, not even that of a call in flight', async () => {
  for (const path of ['providers/a', 'providers/b', 'providers/c']) await begin(path);
  const held = await world.untilHeld({ operation: 'createProvider' });
  world.forgetJobs();
  await world.get(Feeder).round();
  world.forgetJobs();
  await held.answer();
  expect(await verdicts(['providers/a', 'providers/b', 'providers/c'])).toEqual(Array(3).fill(SYNCED));
  expect(created()).toHaveLength(3);
});

test('a provider in a client’s list on the platform is deleted after the list has changed', async () => {
  for (const path of ['providers/home', 'providers/next', 'clients/moves']) await put(path);
  await begin('clients/moves', { providers: ['next'] });
  const held = await world.untilHeld({ operation: 'setClientProviders' });
  expect(verdictOf(await remove('providers/home'))).toEqual(['deleting', 'clients-still-listed']);
  await held.answer();
  expect(await verdict('providers/home')).toEqual(['deleted', null]);
});

test('the metrics report the oldest due work of imports and of other people separately', async () => {
  await imported(1, 'i');
  await world.advance('1 h');
  await begin('providers/new');
  const { text } = await world.call('GET', '/metrics');
  const seconds = (kind: string) =>
    Math.round(Number(new RegExp(`^notebridge_oldest_due_seconds\\{kind="${kind}"\\} (.*)$`, 'm').exec(text)?.[1]));
  expect([seconds('people'), seconds('bulk-people')]).toEqual([0, 3_600]);
});

describe('clients that wait for a provider', () => {
  let ready: string;
  /** Creates waiting clients of a mirrored provider. @param waitsForOther condition of those with an unmirrored one, too */
  async function clients(count: number, waitsForOther: string): Promise<void> {
    const rows = await world.sql<{ id: string }>(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state) VALUES
         (gen_random_uuid(), 'provider', 'p-1', '', '', 'u-1', 'synced'),
         (gen_random_uuid(), 'provider', 'p-2', '', '', NULL, 'needs-review') RETURNING id`,
    );
    const [mirrored, other] = rows.map(({ id }) => id);
    ready = mirrored ?? '';
    await world.sql(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, state, error_code)
       SELECT gen_random_uuid(), 'client', 'c-' || n, '', '', 'waiting', 'provider-not-mirrored'
       FROM generate_series(1, $1::int) AS n`,
      [count],
    );
    await world.sql(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT id, 0, $1::uuid FROM people WHERE kind = 'client'
       UNION ALL SELECT id, 1, $2::uuid FROM people WHERE kind = 'client' AND ${waitsForOther}`,
      [mirrored, other],
    );
  }
  const decided = async () =>
    (await world.sql(`SELECT external_id AS id FROM people WHERE due_at IS NOT NULL`)).map(({ id }) => id);

  test('are decided again when it is mirrored, at most 500 in each round', async () => {
    await clients(700, "external_id = 'c-1'");
    await due(); // begins the sweep of overlooked people, which must not help here
    await world.sql('UPDATE people SET due_at = NULL, state = $1, step = NULL WHERE kind = $2', ['waiting', 'client']);
    const dependents = world.get(DependentsRepository);
    await world.get(PrismaService).transaction((tx) => dependents.requeueClientsOf(tx, ready));
    const counts: number[] = [];
    for (const _round of [1, 2, 3]) {
      await due();
      counts.push((await decided()).length);
    }
    expect(counts[0]).toBeLessThanOrEqual(500);
    expect([counts.at(-1), (await decided()).includes('c-1')]).toEqual([699, false]);
  });

  test('are found slice by slice if the event was lost', async () => {
    await clients(1_200, "external_id <> 'c-999'");
    for (const _round of [1, 2, 3]) {
      await due();
      await world.advance('11 s');
    }
    expect(await decided()).toEqual(['c-999']);
  });
});
