import { Logger } from '@nestjs/common';
import pg from 'pg';
import { canary, Searcher } from '../../harness/canaries.js';
import { dumpOf } from '../../harness/database-dump.js';
import { startProxyOf } from '../../harness/tcp-proxy.js';
import { Clock } from '../../src/config/clock.js';
import { QUEUE_CONNECTIONS } from '../../src/database/connect/connection-shares.js';
import { QUEUE_NAMES } from '../../src/queue/backend/queue-names.js';
import { prepareQueueStore, QueueStore } from '../../src/queue/backend/queue-store.js';
import { useWorld } from '../world/use-world.js';

const PERSON = canary('Person');

/** Errors as libraries throw them: message, stack and other properties quote a person. */
const FAILURES: readonly unknown[] = [
  Object.assign(new Error(`Key (email)=(${PERSON})\n    at ${PERSON}`), { code: '23505' }),
  Object.assign(new Error(PERSON), { name: 'AxiosError', response: { data: PERSON } }),
  new Error('outer', { cause: new Error(PERSON) }),
  `no error, but ${PERSON}`,
];

const world = useWorld();
const envOf = (url: string) => ({ REDIS_URL: undefined, QUEUE_PREFIX: 'test', DATABASE_URL: url });
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  for (const close of closers.splice(0).reverse()) await close();
});
beforeAll(() => prepareQueueStore(envOf(world.database.url), world.database.url));

/** Queues with a worker for each. */
function open(url = world.database.url, activate: () => Promise<unknown> = async () => undefined) {
  const store = new QueueStore(envOf(url), new Clock());
  const activated = new Set<string>();
  const workers = QUEUE_NAMES.map((name) =>
    store.work(name, () => {
      activated.add(name);
      return activate();
    }),
  );
  closers.push(async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await store.onApplicationShutdown();
  });
  const notify = async () => {
    for (const name of QUEUE_NAMES) await store.add(name, 0);
  };
  const allActivated = async () => {
    activated.clear();
    await world.eventually('each worker is activated', async () => {
      await notify();
      return activated.size === QUEUE_NAMES.length;
    });
  };
  return { store, allActivated, health: () => store.health() };
}

const withOptions = (options: string) => {
  const url = new URL(world.database.url);
  url.searchParams.set('options', options);
  return url.toString();
};

/** Every LISTEN that is sent from now on. The first ones fail. */
function listens(failures = 0): unknown[] {
  const sent: unknown[] = [];
  const { query } = pg.Client.prototype;
  jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    if (!`${args[0]}`.includes('LISTEN')) return Reflect.apply(query, this, args);
    sent.push(args[0]);
    return sent.length <= failures ? Promise.reject(new Error('Query read timeout')) : Reflect.apply(query, this, args);
  });
  return sent;
}

test('all queues and workers of a process share the connections that it counts', async () => {
  const sent = listens();
  await open().allActivated();
  await world.eventually('the workers listen', () => sent.length > 0);
  expect(sent).toHaveLength(1);
  const [{ count } = { count: 0 }] = await world.sql<{ count: number }>(
    `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'notebridge-queues'`,
  );
  expect(count).toBeLessThanOrEqual(QUEUE_CONNECTIONS);
});

test('workers listen again after a LISTEN fails', async () => {
  const sent = listens(1);
  // Work that is there when a worker starts activates it before it listens.
  await open().allActivated();
  await world.eventually('the workers listen again', () => sent.length > 1);
  expect(sent).toHaveLength(2);
});

test('a worker that closes leaves the shared connections open', async () => {
  const queues = open();
  await queues.allActivated();
  await queues.store.work('compliance', async () => undefined).close();
  await queues.allActivated();
});

test('a worker that closes waits for the activation in progress', async () => {
  let isActive = false;
  let end = () => {};
  const store = new QueueStore(envOf(world.database.url), new Clock());
  closers.push(() => store.onApplicationShutdown());
  const worker = store.work('compliance', () => {
    isActive = true;
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  await world.eventually('an activation is in progress', async () => {
    await store.add('compliance', 0);
    return isActive;
  });
  const closed = worker.close().then(() => 'closed');
  const waits = new Promise((resolve) => setTimeout(resolve, 1_000, 'waits')); // three times as long as for the store
  expect(await Promise.race([closed, waits])).toBe('waits');
  end();
  expect(await closed).toBe('closed');
});

test('options in DATABASE_URL do not move BullMQ to another schema', async () => {
  await open(withOptions('-c search_path=elsewhere -c statement_timeout=9s')).allActivated();
});

test('connections that turned out read-only are discarded', async () => {
  const database = new URL(world.database.url).pathname.slice(1);
  const queues = open();
  const idle = new QueueStore(envOf(world.database.url), new Clock());
  closers.push(() => idle.onApplicationShutdown());
  await world.sql(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
  for (const { health } of [queues, { health: () => idle.health() }]) {
    await world.eventually('it is read-only', async () =>
      `${(await health()).reasons?.[0]?.values?.fault}`.includes('read-only PostgreSQL'),
    );
  }
  await world.sql(`BEGIN READ WRITE; ALTER DATABASE ${database} RESET default_transaction_read_only; COMMIT`);
  await world.eventually('it is healthy', async () => (await queues.health()).status === 'ok');
  await queues.allActivated();
});

test('workers whose first connections fail leave the process free, and work later', async () => {
  const { proxy, url } = await startProxyOf(world.database.url);
  closers.push(() => proxy.close());
  await proxy.cut();
  const queues = open(url.href);
  await world.eventually('it is unavailable', async () =>
    `${(await queues.health()).reasons?.[0]?.values?.fault}`.includes('cannot be reached'),
  );
  await proxy.restore();
  await queues.allActivated();
});

test('a failed activation leaves no job, and logs no part of its error', async () => {
  await world.sql('DELETE FROM bullmq.job');
  for (const failure of FAILURES) {
    let logged = '';
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation((line) => {
      logged += JSON.stringify(line);
    });
    const queues = open(world.database.url, async () => {
      throw failure;
    });
    await queues.allActivated();
    await world.eventually('it is logged', () => logged.includes('an activation failed'));
    warn.mockRestore();
    expect(new Searcher().finds(logged)).toEqual([]);
    await world.eventually('no job is left', async () => (await world.sql('SELECT FROM bullmq.job')).length === 0);
    await closers.pop()?.();
  }
});

test('an activation returns nothing to the queue', async () => {
  await open(world.database.url, async () => ({ email: PERSON })).allActivated();
  expect(new Searcher().finds(await dumpOf(world.database.url))).toEqual([]);
});
