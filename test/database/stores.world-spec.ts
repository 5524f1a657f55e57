import type pg from 'pg';
import { discardConnections, keepOpen, newPool } from '../../src/database/connect/pools.js';
import { Database } from '../../src/database/database.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { InboxWriter } from '../../src/webhooks/receive/inbox.writer.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const checks = async () => (await world.call<HealthReport>('GET', '/health/ready')).body.checks;
const receiverPool = () => Reflect.get(world.get(InboxWriter), 'pool') as pg.Pool;

/** Runs a statement on every open connection of a pool, such as one that makes its server look demoted. */
async function onEach(pool: pg.Pool, statement: string): Promise<void> {
  const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
  for (const client of clients) await client.query(statement);
  for (const client of clients) client.release();
}

const insert = (no: number) =>
  world
    .get(Database)
    .transaction((tx) =>
      tx.query('INSERT INTO handed_out_urls (fingerprint, handed_out_at) VALUES ($1, now())', [`no ${no}`]),
    );

describe('after a failover', () => {
  it('the first refused write renews every connection of its pool', async () => {
    const { pool } = world.get(Database);
    await Promise.all(Array.from({ length: 3 }, () => pool.query('SELECT pg_sleep(0.05)')));
    await onEach(pool, 'SET default_transaction_read_only = on');
    await expect(insert(0)).rejects.toMatchObject({ code: '25006' });
    await Promise.all([1, 2, 3].map(insert));
    expect(await world.sql('SELECT FROM handed_out_urls')).toHaveLength(3);
  });

  it('no statement gets a discarded connection, however early it comes', async () => {
    const { pool } = world.get(Database);
    await Promise.all(Array.from({ length: 3 }, () => pool.query('SELECT pg_sleep(0.05)')));
    discardConnections(pool);
    await Promise.all([4, 5, 6].map(insert));
    expect(await world.sql('SELECT FROM handed_out_urls')).toHaveLength(3);
  });

  it.each([
    ['inbox', receiverPool],
    ['database', () => world.get(Database).pool],
  ])('the health check of the %s renews its connections', async (part, pool) => {
    const demoted = 'SET default_transaction_read_only = on';
    await onEach(pool(), demoted);
    expect((await checks())[part]?.status).toBe('down');
    await world.eventually('it has recovered', async () => (await checks())[part]?.status === 'ok');
    await world.eventually('it has no old connection', async () => {
      const clients = await Promise.all(Array.from({ length: pool().totalCount }, () => pool().connect()));
      const modes = await Promise.all(clients.map((client) => client.query('SHOW default_transaction_read_only')));
      for (const client of clients) client.release();
      return modes.every(({ rows }) => rows[0]?.default_transaction_read_only === 'off');
    });
  });

  it('a caller gets 503, and the next attempt succeeds', async () => {
    await onEach(world.get(Database).pool, 'SET default_transaction_read_only = on');
    const put = () =>
      world.call('PUT', '/v1/providers/p-1', { body: { email: 'a@example.org', firstName: 'A', lastName: 'B' } });
    const first = await put();
    expect([first.status, (await put()).status]).toEqual([503, 202]);
  });

  it('a statement that runs on a discarded connection fails like one that the server rejects', async () => {
    const { pool } = world.get(Database);
    const running = expect(pool.query('SELECT pg_sleep(10)')).rejects.toMatchObject({ code: '25006' });
    const active = `SELECT FROM pg_stat_activity WHERE state = 'active' AND query = 'SELECT pg_sleep(10)'`;
    await world.eventually('it runs', async () => (await world.sql(active)).length === 1);
    discardConnections(pool);
    await running;
  });
});

test('the connections of the receiver are opened at the start, and lost ones again', async () => {
  await world.eventually('they are open', () => receiverPool().idleCount === 2);
  await world.sql(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND application_name = 'notebridge-receiver'`,
  );
  await world.eventually('they are lost', () => receiverPool().totalCount === 0);
  await world.eventually('they are open again', () => receiverPool().idleCount === 2);
});

test('a pool that is kept open opens no more than its limit', async () => {
  const pool = newPool({
    connectionString: world.database.url,
    max: 2,
    idleTimeoutMillis: 0,
    application_name: 'kept',
  });
  await keepOpen(pool);
  expect([pool.totalCount, pool.idleCount]).toEqual([2, 2]);
  await pool.end();
});
