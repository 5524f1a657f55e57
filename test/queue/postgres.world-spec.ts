import { startProxyOf } from '../../harness/tcp-proxy.js';
import { Clock } from '../../src/config/clock.js';
import { PRODUCER_CONNECTIONS, WORKER_CONNECTIONS } from '../../src/database/connect/connection-shares.js';
import { prepareQueueStore } from '../../src/queue/backend/prepare-queue-store.js';
import { QUEUE_NAMES, type QueueName } from '../../src/queue/backend/queue-names.js';
import { PostgresWorkStore } from '../../src/queue/work/postgres-store.js';
import { useWorld } from '../world/use-world.js';
import { openQueues } from './real-queues.js';

const world = useWorld();
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
beforeAll(async () => {
  const { url } = world.database;
  await prepareQueueStore({ REDIS_URL: undefined, QUEUE_PREFIX: '', DATABASE_URL: url }, url);
});

function open(url = world.database.url, names: readonly QueueName[] = ['compliance', 'people']) {
  const queues = openQueues(world, new PostgresWorkStore(url, new Clock()), names);
  closers.push(queues.close);
  return queues;
}

const withOptions = (options: string) => {
  const url = new URL(world.database.url);
  url.searchParams.set('options', options);
  return url.toString();
};

test('all queues and workers of a process stay within the connections that it counts', async () => {
  const queues = open(world.database.url, QUEUE_NAMES);
  await queues.work();
  await queues.isHealthy();
  const [{ count } = { count: 0 }] = await world.sql<{ count: number }>(
    `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'notebridge-queues'`,
  );
  expect(count).toBeGreaterThan(QUEUE_NAMES.length);
  expect(count).toBeLessThanOrEqual(WORKER_CONNECTIONS + PRODUCER_CONNECTIONS);
});

test('options in DATABASE_URL do not move BullMQ to another schema', async () => {
  await open(withOptions('-c search_path=elsewhere -c statement_timeout=9s')).work();
});

test('connections that turned out read-only are discarded', async () => {
  const database = new URL(world.database.url).pathname.slice(1);
  const [queues, idle] = [open(), open(world.database.url, [])];
  await queues.work();
  await world.sql(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
  for (const { isDegraded } of [queues, idle]) await isDegraded('read-only PostgreSQL');
  await world.sql(`BEGIN READ WRITE; ALTER DATABASE ${database} RESET default_transaction_read_only; COMMIT`);
  for (const { isHealthy } of [queues, idle]) await isHealthy();
  await queues.work();
});

test('workers whose first connections fail leave the process free, and work later', async () => {
  const { proxy, url } = await startProxyOf(world.database.url);
  closers.push(() => proxy.close());
  await proxy.cut();
  const queues = open(url.href);
  await queues.isDegraded('PostgreSQL cannot be reached at DATABASE_URL');
  await proxy.restore();
  await queues.isHealthy();
  await queues.work();
});

test('a PostgreSQL that never answers is a fault within seconds, which ends when it answers', async () => {
  const { proxy, url } = await startProxyOf(world.database.url);
  closers.push(() => proxy.close());
  const queues = open(url.href);
  await queues.work();
  proxy.stall();
  await queues.isDegraded('PostgreSQL cannot be reached at DATABASE_URL');
  proxy.resume();
  await queues.isHealthy();
  await queues.work();
});
