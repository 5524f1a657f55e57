import { Logger } from '@nestjs/common';
import { canary, Searcher } from '../../harness/canaries.js';
import { dumpOf } from '../../harness/database-dump.js';
import { startTcpProxy } from '../../harness/tcp-proxy.js';
import { Clock } from '../../src/config/clock.js';
import { QUEUE_CONNECTIONS } from '../../src/database/connect/connection-shares.js';
import { QUEUE_NAMES } from '../../src/queue/backend/queue-names.js';
import { prepareQueueStore, QueueStore } from '../../src/queue/backend/queue-store.js';
import { useWorld } from '../world/use-world.js';

const PERSON = canary('Person');
const PLANTED = canary('Planted');

/** Errors as libraries throw them: message, stack and other properties quote a person. */
const FAILURES: [code: string, fail: () => unknown][] = [
  ['database-23505', () => Object.assign(new Error(`Key (email)=(${PERSON})\n    at ${PERSON}`), { code: '23505' })],
  ['AxiosError', () => Object.assign(new Error(PERSON), { name: 'AxiosError', response: { data: PERSON } })],
  ['Error', () => new Error('outer', { cause: new Error(PERSON) })],
  ['unknown', () => Object.assign(new Error('x'), { name: `${PERSON} 1`, code: PERSON })],
  ['unknown', () => `no error, but ${PERSON}`],
];

const world = useWorld();
const envOf = (url: string) => ({ REDIS_URL: undefined, QUEUE_PREFIX: 'test', DATABASE_URL: url });
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
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
    for (const name of QUEUE_NAMES) await store.add(name, 'test', {});
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

test('all queues and workers of a process share the connections that it counts', async () => {
  await open().allActivated();
  const [{ count } = { count: 0 }] = await world.sql<{ count: number }>(
    `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'notebridge-queues'`,
  );
  expect(count).toBeLessThanOrEqual(QUEUE_CONNECTIONS);
});

test('options in DATABASE_URL do not move BullMQ to another schema', async () => {
  await open(withOptions('-c search_path=elsewhere -c statement_timeout=9s')).allActivated();
});

test('connections that turned out read-only are discarded', async () => {
  const database = new URL(world.database.url).pathname.slice(1);
  const queues = open();
  await world.sql(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
  await world.eventually('it is read-only', async () =>
    `${(await queues.health()).reasons?.[0]?.values?.fault}`.includes('read-only PostgreSQL'),
  );
  await world.sql(`BEGIN READ WRITE; ALTER DATABASE ${database} RESET default_transaction_read_only; COMMIT`);
  await world.eventually('it is healthy', async () => (await queues.health()).status === 'ok');
  await queues.allActivated();
});

test('workers whose first connections fail leave the process free, and work later', async () => {
  const url = new URL(world.database.url);
  const proxy = await startTcpProxy(Number(url.port));
  closers.push(() => proxy.close());
  await proxy.cut();
  const queues = open(Object.assign(url, { port: String(proxy.port) }).toString());
  await world.eventually('it is unavailable', async () =>
    `${(await queues.health()).reasons?.[0]?.values?.fault}`.includes('cannot be reached'),
  );
  await proxy.restore();
  await queues.allActivated();
});

test('a failed activation leaves a code, but no part of its error or result', async () => {
  let logged = '';
  const note = (...words: unknown[]) => {
    logged += JSON.stringify(words);
  };
  Logger.overrideLogger({ log: note, warn: note, error: note });
  const left = [...FAILURES];
  const queues = open(world.database.url, async () => {
    const failure = left.shift();
    if (failure) throw failure[1]();
    return { email: PERSON };
  });
  for (let jobs = 0; jobs <= FAILURES.length; jobs += 1) await queues.store.add('imports', PLANTED, {});
  const reasons = async () =>
    (await world.sql<{ failed_reason: string }>(`SELECT failed_reason FROM bullmq.job WHERE state = 'failed'`)).map(
      ({ failed_reason }) => failed_reason,
    );
  await world.eventually('all failed', async () => (await reasons()).length === FAILURES.length);
  Logger.overrideLogger(false);
  expect((await reasons()).sort()).toEqual(FAILURES.map(([code]) => code).sort());
  const held = await dumpOf(world.database.url);
  expect(held).toContain(PLANTED);
  expect(new Searcher().finds(held.replaceAll(PLANTED, ''))).toEqual([]);
  expect(logged).toContain('an activation failed');
  expect(new Searcher().finds(logged)).toEqual([]);
});
