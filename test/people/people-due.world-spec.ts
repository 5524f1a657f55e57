import fc from 'fast-check';
import { propertyRuns } from '../../src/config/property-runs.spec-support.js';
import { Database } from '../../src/database/database.js';
import type { Lease } from '../../src/due-rows/lease.js';
import { ClaimRepository } from '../../src/people/reconcile/claim.repository.js';
import { Reconciler } from '../../src/people/reconcile/reconciler.js';
import { DependentsRepository } from '../../src/people/store/dependents.repository.js';
import { DuePeopleRepository, LANES } from '../../src/people/store/due-people.repository.js';
import { useWorld } from '../world/use-world.js';
import { peopleOf } from './mirroring.js';

const world = useWorld();
const { begin, put, remove, verdict, verdictOf } = peopleOf(world);

const claims = () => world.get(ClaimRepository);
const transaction: Database['transaction'] = (work, size) => world.get(Database).transaction(work, size);

describe('a probe of a stopped operation', () => {
  const callers = async () =>
    (
      await world.sql<{ id: string }>(
        `SELECT external_id AS id FROM platform_calls c JOIN people p ON p.id = c.person_id
         WHERE operation = 'createProvider' ORDER BY c.id`,
      )
    ).map(({ id }) => id);

  test('goes to a person who was never refused, else to the one refused longest ago', async () => {
    world.platform.injectFault({ operation: 'createProvider', kind: 'forbid', count: null });
    for (const path of ['providers/a', 'providers/b', 'providers/c']) await put(path);
    for (const _probe of [1, 2, 3, 4]) {
      await world.advance('10 min');
      await world.settle();
    }
    expect(await callers()).toEqual(['a', 'b', 'c', 'a', 'b']);
  });

  test('waits while the lane of a person who was never refused may not call', async () => {
    for (const path of ['providers/refused', 'providers/new']) await begin(path);
    await world.sql(
      `UPDATE people SET step = 'createProvider', lane = CASE external_id WHEN 'new' THEN 'bulk' ELSE 'interactive' END::lane,
         refused_at = CASE external_id WHEN 'refused' THEN now() END`,
    );
    await world.advance('1 s');
    const gate = { queue: 'createProvider', phase: 'half-open', until: 0, person: null } as const;
    const prober = (lanes: typeof LANES) =>
      transaction((tx) => world.get(DuePeopleRepository).takeProber(tx, [...lanes], gate, world.now()));
    expect(await prober(['interactive'])).toBeUndefined();
    const [row] = await world.sql(`SELECT id FROM people WHERE external_id = 'new'`);
    expect(await prober(LANES)).toBe(row?.id);
  });
});

test('no statement but an UPDATE follows the grant of a call in its transaction', async () => {
  await begin('providers/new');
  const statements: string[] = [];
  const database = world.get(Database);
  const original = database.transaction.bind(database);
  jest.spyOn(database, 'transaction').mockImplementation((work, size) =>
    original((tx) => {
      const query = ((asked: string | { text: string }, values: unknown[]) => {
        statements.push((typeof asked === 'string' ? asked : asked.text).trim());
        return tx.query(asked as string, values);
      }) as typeof tx.query;
      return work(new Proxy(tx, { get: (of, key) => (key === 'query' ? query : Reflect.get(of, key)) }));
    }, size),
  );
  expect((await claims().claim())?.row.step.operation).toBe('checkUser');
  const grant = statements.findIndex((text) => text.includes('INSERT INTO platform_calls'));
  expect(grant).toBeGreaterThan(0);
  expect(statements.slice(grant + 1).filter((text) => !text.startsWith('UPDATE'))).toEqual([]);
});

test('one activation makes one call, although more people are due', async () => {
  for (const path of ['providers/one', 'providers/two']) await begin(path);
  await world.advance('1 ms');
  for (const calls of [1, 2, 3]) {
    await world.get(Reconciler).activate();
    expect(world.platform.arrivals()).toBe(calls);
  }
});

test('a claim knows when the next person can be claimed, without another read', async () => {
  const duePerson = fc.record({
    lane: fc.constantFrom(...LANES),
    inSeconds: fc.constantFrom(-60, -1, 0, 5, 600),
    step: fc.constantFrom(null, 'checkUser'),
  });
  for (const id of [0, 1, 2, 3, 4]) await begin(`providers/${id}`);
  const property = fc.asyncProperty(fc.array(duePerson, { minLength: 1, maxLength: 5 }), async (people) => {
    await world.sql(
      `UPDATE people SET due_at = NULL, lease_owner = NULL, lease_safe_at = NULL, attempt_call_id = NULL`,
    );
    await world.sql('DELETE FROM platform_calls');
    await world.sql('UPDATE call_budgets SET bulk_next_at = NULL');
    for (const [id, { lane, inSeconds, step }] of people.entries()) {
      const dueAt = new Date(world.now().getTime() + 1_000 * inSeconds);
      const due = 'UPDATE people SET due_at = $2, lane = $3, step = $4 WHERE external_id = $1';
      await world.sql(due, [String(id), dueAt, lane, step]);
    }
    const leases: Lease[] = [];
    for (let claim = await claims().claim(); claim; claim = await claims().claim()) {
      leases.push(claim.lease);
      expect(claim.row.nextInMs).toBe(await claims().nextInMs());
      await world.advance('1 s');
    }
    expect(leases.length).toBeGreaterThanOrEqual(people.filter(({ inSeconds }) => inSeconds <= 0).length);
    for (const lease of leases) claims().done(lease);
  });
  await fc.assert(property, propertyRuns(0.02));
});

test('a claim that finds no permit plans the next one for the moment of the permit', async () => {
  await put('providers/first');
  await begin('providers/next');
  await world.sql(`UPDATE people SET lane = 'bulk'`);
  await world.sql('UPDATE call_budgets SET bulk_next_at = $1', [new Date(world.now().getTime() + 100)]);
  expect(await claims().claim()).toBeUndefined();
  expect(await claims().nextInMs()).toBe(100);
});

test('once a call has ended, its person need not wait because an earlier claim found no one', async () => {
  world.platform.hold({ operation: 'checkUser' });
  await begin('providers/one');
  await world.advance('1 ms');
  const call = world.get(Reconciler).reconcileNext();
  await world.untilCalled('checkUser');
  expect(await claims().claim()).toBeUndefined();
  world.platform.release();
  await call;
  expect(await claims().nextInMs()).toBe(0);
});

test('the metrics report the oldest due work of imports and of other people separately', async () => {
  await begin('providers/imported');
  await world.sql(`UPDATE people SET lane = 'bulk'`);
  await world.advance('1 h');
  await begin('providers/new');
  const { text } = await world.call('GET', '/metrics');
  const seconds = (kind: string) =>
    Math.round(Number(new RegExp(`^notebridge_oldest_due_seconds\\{kind="${kind}"\\} (.*)$`, 'm').exec(text)?.[1]));
  expect([seconds('people'), seconds('bulk-people')]).toEqual([0, 3_600]);
});

test('a provider in a client’s list on the platform is deleted after the list has changed', async () => {
  for (const path of ['providers/home', 'providers/next', 'clients/moves']) await put(path);
  await begin('clients/moves', { providers: ['next'] });
  const held = await world.untilHeld({ operation: 'setClientProviders' });
  expect(verdictOf(await remove('providers/home'))).toEqual(['deleting', 'clients-still-listed']);
  await held.answer();
  expect(await verdict('providers/home')).toEqual(['deleted', null]);
});

describe('clients that wait for a provider', () => {
  let ready: string;
  /** Creates waiting clients of a mirrored provider. @param waitsForOther condition of those with an unmirrored one, too */
  async function waiting(count: number, waitsForOther: string): Promise<void> {
    const rows = await world.sql<{ id: string }>(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, platform_user_id, state) VALUES
         (gen_random_uuid(), 'provider', 'p-1', '', '', 'u-1', 'synced'),
         (gen_random_uuid(), 'provider', 'p-2', '', '', NULL, 'pending') RETURNING id`,
    );
    const [mirrored, other] = rows.map(({ id }) => id);
    ready = mirrored ?? '';
    await world.sql(
      `INSERT INTO people (id, kind, external_id, profile, profile_hash, state, lane)
       SELECT gen_random_uuid(), 'client', 'c-' || n, '', '', 'waiting', 'bulk' FROM generate_series(1, $1::int) AS n`,
      [count],
    );
    await world.sql(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT id, 0, $1::uuid FROM people WHERE kind = 'client'
       UNION ALL SELECT id, 1, $2::uuid FROM people WHERE kind = 'client' AND ${waitsForOther}`,
      [mirrored, other],
    );
    await world.advance('1 min');
  }
  const dueOnes = () =>
    world.sql('SELECT external_id, due_at = wanted_at AS placed FROM people WHERE due_at IS NOT NULL');

  test('are requeued at their places in batches of at most 500', async () => {
    await waiting(1_200, "external_id = 'c-1'");
    const dependents = world.get(DependentsRepository);
    await transaction((tx) => dependents.scheduleClientsOf(tx, ready));
    expect(await dueOnes()).toEqual([]);
    const batches: (number | undefined)[] = [];
    do batches.push(await dependents.requeueClients());
    while (batches.at(-1) !== undefined && batches.length < 10);
    expect(batches.slice(0, -1).reduce((sum: number, batch = 0) => sum + batch, 0)).toBe(1_199);
    expect(Math.max(...batches.slice(0, -1).map((batch) => batch ?? 0))).toBeLessThanOrEqual(500);
    const due = await dueOnes();
    expect([due.length, due.every(({ placed }) => placed)]).toEqual([1_199, true]);
  });

  test('are requeued slice by slice if a requeue was lost', async () => {
    await waiting(2_500, "external_id <> 'c-999'");
    const dependents = world.get(DependentsRepository);
    await dependents.requeueOverlooked();
    expect(await dueOnes()).toEqual([]);
    for (const _round of [2, 3]) await dependents.requeueOverlooked();
    expect(await dueOnes()).toMatchObject([{ external_id: 'c-999' }]);
  });
});
