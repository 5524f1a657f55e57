import pg from 'pg';
import { withOptions } from '../../harness/world/time.js';
import { Clock } from '../../src/config/clock.js';
import { Database } from '../../src/database/database.js';
import { Retention } from '../../src/operations/retention.js';
import type { Intervals } from '../../src/queue/work/intervals.js';
import { Vault } from '../../src/vault/vault.js';
import { InboxRepository } from '../../src/webhooks/process/inbox.repository.js';
import { useWorld } from './use-world.js';

const world = useWorld();

const provider = (externalId: string) => ({ email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' });
const put = (externalId: string) => world.call('PUT', `/v1/providers/${externalId}`, { body: provider(externalId) });
const stateOf = async (externalId: string) => (await world.call('GET', `/v1/providers/${externalId}`)).body.sync.state;

/** Runs one statement in a new session. */
async function inNewSession<Row extends object>(sql: string, options = ''): Promise<Row | undefined> {
  const connectionString = options ? withOptions(world.database.url, options) : world.database.url;
  const client = new pg.Client({ connectionString });
  await client.connect();
  const { rows } = await client.query<Row>(sql).finally(() => client.end());
  return rows[0];
}

const TIMES = 'SELECT now() AS "now", clock_timestamp() AS "clock"';

describe('time', () => {
  test('stands still for the service and the database while a test does nothing', async () => {
    const before = world.now();
    await world.sql('SELECT pg_sleep(0.02)');
    expect(await world.sql(TIMES)).toEqual([{ now: before, clock: before }]);
    expect(world.get(Clock).now()).toEqual(before);
  });

  test('advances for the service, the database and the platform together', async () => {
    const before = world.now().getTime();
    await world.advance('90 s');
    const now = new Date(before + 90_000);
    expect(world.now()).toEqual(now);
    expect(await inNewSession(TIMES)).toEqual({ now, clock: now });
    expect(world.platform.simulator.state.nowMs()).toBe(now.getTime());
  });

  test('fills column defaults', async () => {
    await put('p-1');
    const [person] = await world.sql<{ at: Date }>('SELECT created_at AS at FROM people');
    expect(Math.abs(Number(person?.at) - world.now().getTime())).toBeLessThanOrEqual(5);
  });

  test.each(['-c work_mem=2MB', '-c search_path=public'])('holds in sessions with options (%s)', async (options) => {
    await world.advance('1 d');
    expect(await inNewSession(TIMES, options)).toEqual({ now: world.now(), clock: world.now() });
  });

  test('holds inside functions that pin their search path', async () => {
    const pinned = await world.sql<{ path: string }>(
      `SELECT proconfig::text AS path FROM pg_proc
       WHERE pronamespace = 'public'::regnamespace AND proconfig::text LIKE '%search_path%'`,
    );
    expect(pinned).not.toEqual([]);
    for (const { path } of pinned) expect(path).toContain('public, vtime, pg_catalog');
  });

  test('fires timers in the order of their time, and none that was cancelled', async () => {
    const fired: string[] = [];
    const clock = world.get(Clock);
    clock.after(2_000, () => fired.push('second'));
    clock.after(1_000, () => fired.push('first'));
    clock.after(1_500, () => fired.push('cancelled'))();
    await world.advance('1999 ms');
    expect(fired).toEqual(['first']);
    await world.advance('1 ms');
    expect(fired).toEqual(['first', 'second']);
  });

  test('keeps a comparison with now() as an index condition', async () => {
    const sql = 'EXPLAIN (FORMAT JSON) SELECT id FROM webhook_deliveries WHERE due_at <= now()';
    const plan = await inNewSession<{ 'QUERY PLAN': object }>(sql, '-c enable_seqscan=off');
    expect(JSON.stringify(plan?.['QUERY PLAN'])).toContain('"Index Cond":"(due_at <= ');
  });
});

describe('background work', () => {
  test('runs only when the test asks for it', async () => {
    await put('p-1');
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect([await stateOf('p-1'), world.platform.arrivals()]).toEqual(['pending', 0]);
    await world.settle();
    expect(await stateOf('p-1')).toBe('synced');
  });

  test('continues while a caller waits', async () => {
    const answer = await world.call('PUT', '/v1/providers/p-1', { body: provider('p-1'), wait: 60 });
    expect([answer.status, answer.body.sync.state]).toEqual([200, 'synced']);
  });

  test('stops in the middle of a call that the platform holds', async () => {
    await put('p-1');
    const held = await world.untilHeld({ operation: 'createProvider' });
    expect([world.platform.usersOf('p-1').length, await stateOf('p-1')]).toEqual([1, 'pending']);
    await held.answer();
    expect(await stateOf('p-1')).toBe('synced');
  });

  test('finds a webhook in the inbox once the platform has sent it', async () => {
    const { deliveries } = world.platform.simulator.state;
    deliveries.send({ eventType: 'USER_CREATED', payload: { userId: 'u-1', externalUserId: 'p-1', role: 'Client' } });
    await world.platform.webhooksSent();
    expect(await world.sql('SELECT event_type FROM webhook_deliveries')).toHaveLength(1);
  });

  test('fails the test if it never ends, and lists the latest statements', async () => {
    await world.sql('CREATE TABLE noted (number int)');
    const endless = jest.spyOn(world.get(InboxRepository), 'dueSubjects').mockImplementation(async () => {
      await world.get(Database).pool.query('INSERT INTO noted VALUES (1)');
      return [{ id: 'endless' }];
    });
    await expect(world.settle(20)).rejects.toThrow(/never settles.*INSERT INTO noted/s);
    endless.mockRestore();
    await world.sql('DROP TABLE noted');
  });

  test('must cover everything that the service repeats', async () => {
    jest.spyOn(Retention.prototype, 'onModuleInit').mockImplementation(function declare(this: Retention) {
      (Reflect.get(this, 'intervals') as Intervals).every(1_000, 'forgotten work', async () => {});
    });
    await expect(world.startAnother()).rejects.toThrow(/"forgotten work".*REPEATED_WORK/);
  });
});

describe('a reset', () => {
  test.each(['first', 'second'])('lets the %s test start with an empty database and platform', async () => {
    expect(await world.sql('SELECT 1 FROM people UNION ALL SELECT 1 FROM audit_entries')).toEqual([]);
    expect([world.platform.arrivals(), world.platform.usersOf('p-1')]).toEqual([0, []]);
    await put('p-1');
    await world.settle();
  });

  test('forgets missing keys and damaged values', async () => {
    const vault = world.get(Vault);
    for (const name of ['damaged', 'missing']) (Reflect.get(vault, name) as Set<string>).add('k9');
    expect(vault.health().status).toBe('degraded');
    await world.reset();
    expect(vault.health().status).toBe('ok');
  });

  test('forgets the statistics of the planner', async () => {
    const statistics = () =>
      world.sql(`SELECT tablename::text FROM pg_stats WHERE schemaname = 'public'
                 UNION SELECT relname FROM pg_class WHERE relkind <> 'S' AND relnamespace = 'public'::regnamespace AND reltuples > 0`);
    await put('p-1');
    await world.sql('ANALYZE people');
    expect(await statistics()).toContainEqual({ tablename: 'people' });
    await world.reset();
    expect(await statistics()).toEqual([]);
  });

  test('undoes changed settings', async () => {
    await world.restart({ PLATFORM_CONTRACT: undefined });
    await put('p-1');
    await world.settle();
    expect((await world.call('GET', '/v1/providers/p-1')).body.sync.error?.code).toBe('not-configured');
    await world.reset();
    await put('p-1');
    await world.settle();
    expect(await stateOf('p-1')).toBe('synced');
  });
});

test('no PostgreSQL timeout ends a statement, even one that a transaction sets', async () => {
  const limits = await world.get(Database).transaction(async (tx) => {
    await tx.query(`SET LOCAL statement_timeout = '10s'; SET LOCAL enable_seqscan = off`);
    const { rows } = await tx.query(
      `SELECT current_setting('statement_timeout') AS statement,
              current_setting('idle_in_transaction_session_timeout') AS idle`,
    );
    return rows[0];
  });
  expect(limits).toEqual({ statement: '0', idle: '0' });
});

test('two processes share the database and the clock', async () => {
  const other = await world.startAnother();
  await put('p-1');
  await other.work.people();
  expect(await stateOf('p-1')).toBe('synced');
  expect(other.app.get(Clock)).toBe(world.get(Clock));
});
