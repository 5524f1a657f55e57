import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { canary, Searcher } from '../../harness/canaries.js';
import { dumpOf } from '../../harness/database-dump.js';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../../harness/redis-server.js';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { Clock } from '../../src/config/clock.js';
import { prepareQueueStore, producerOptions, workerOptions } from '../../src/queue/backend/backend.js';
import { BoundedQueue, BoundedWorker } from '../../src/queue/backend/bounded.js';
import { type Notification, USER_MANAGEMENT_QUEUE } from '../../src/queue/backend/queue-names.js';
import { QueueNotifier } from '../../src/queue/notifier/queue-notifier.js';
import { StoreWatch } from '../../src/queue/notifier/store-watch.js';
import { describeOnBothBackends, type QueueBackend } from '../support/backends.js';
import { many, providerLine, providersCsv } from '../support/bulk.js';
import { freshDatabase, type TestDatabase } from '../support/databases.js';
import { partIs } from '../support/health.js';
import { type Mirror, useMirrors } from '../support/service.js';
import { settledPerson } from '../support/settled-person.js';

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

describeOnBothBackends('a queue', (backend) => {
  let database: TestDatabase;
  let env: Parameters<typeof producerOptions>[0];
  let queue: Queue<Notification>;
  let worker: Worker<Notification>;

  beforeAll(async () => {
    database = await freshDatabase();
    env = { REDIS_URL: backend.redisUrl, QUEUE_PREFIX: backend.queuePrefix, DATABASE_URL: database.url };
    await prepareQueueStore(env, database.url);
    queue = new Queue(USER_MANAGEMENT_QUEUE, producerOptions(env));
    worker = new Worker(USER_MANAGEMENT_QUEUE, null, workerOptions(env));
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  });
  afterAll(async () => {
    await Promise.all([worker.close(true), queue.close()]);
    await database.drop();
  });

  const notifierWith = (time: Partial<Clock> = {}) => {
    const clock = Object.assign(new Clock(), time);
    const store = new StoreWatch([queue], clock);
    return new QueueNotifier(new Map([[USER_MANAGEMENT_QUEUE, queue]]), clock, store, { wakeIn: () => undefined });
  };
  const nextJob = () => worker.getNextJob(randomUUID(), { block: false });

  test('delivers many notifications as one, and a new one after a killed worker took it', async () => {
    const notifier = notifierWith();
    const begun = performance.now();
    for (let times = 0; times < 20; times++) notifier.notify(USER_MANAGEMENT_QUEUE, 'test');
    const job = await until('a worker takes it', nextJob);
    // A new one is allowed in each second.
    expect(await queue.getWaitingCount()).toBeLessThanOrEqual(Math.floor((performance.now() - begun) / 1_000));
    await job.removeDeduplicationKey();
    notifier.notify(USER_MANAGEMENT_QUEUE, 'test');
    await until('a worker takes it and dies', nextJob);
    await until('a worker takes a later one', async () => {
      notifier.notify(USER_MANAGEMENT_QUEUE, 'poll');
      return nextJob();
    });
    await notifier.onModuleDestroy();
  });

  test('delays a notification once for one moment, and by a duration regardless of the clock', async () => {
    const fixed = new Date();
    const moment = new Date(fixed.getTime() + 3_600_000);
    const waiting = await queue.getWaitingCount();
    const notifier = notifierWith({ now: () => fixed, monotonicMs: () => 0 });
    for (let times = 0; times < 20; times++) notifier.notify(USER_MANAGEMENT_QUEUE, 'test', moment);
    await notifier.onModuleDestroy();
    await until('it is delayed', async () => (await queue.getDelayedCount()) > 0);
    expect(await queue.getDelayedCount()).toBe(1);
    const ahead = notifierWith({ now: () => new Date(Date.now() + 7_200_000), monotonicMs: () => 0 });
    ahead.notify(USER_MANAGEMENT_QUEUE, 'test', 3_600_000);
    await ahead.onModuleDestroy();
    await until('it is delayed', async () => (await queue.getDelayedCount()) === 2);
    expect(await queue.getWaitingCount()).toBe(waiting);
  });

  test('keeps a code of a failed activation, but no part of its error or result', async () => {
    let logged = '';
    const note = (...words: unknown[]) => {
      logged += JSON.stringify(words);
    };
    Logger.overrideLogger({ log: note, warn: note, error: note });
    const failures = new Queue<Notification>('failures', producerOptions(env));
    const left = [...FAILURES];
    const activate = async () => {
      const failure = left.shift();
      if (failure) throw failure[1]();
      return { email: PERSON };
    };
    const failing = new BoundedWorker('failures', activate, workerOptions(env));
    await failures.waitUntilReady();
    for (let made = 0; made <= FAILURES.length; made++) await failures.add('notify', { reason: PLANTED });
    await until('all but the last failed', async () => {
      const { failed, completed } = await failures.getJobCounts('failed', 'completed');
      return failed === FAILURES.length && completed === 1;
    });
    const failed = await failures.getFailed();
    await Promise.all([failing.close(), failures.close()]);
    Logger.overrideLogger(false);
    expect(failed.map(({ failedReason }) => failedReason).sort()).toEqual(FAILURES.map(([code]) => code).sort());
    expect(failed.flatMap(({ stacktrace }) => stacktrace)).toEqual([]);
    const held = await contentOf(backend, database.url);
    expect(held).toContain(PLANTED);
    expect(new Searcher().finds(held.replaceAll(PLANTED, ''))).toEqual([]);
    expect(logged).toContain('an activation failed');
    expect(new Searcher().finds(logged)).toEqual([]);
  });
});

/** Everything that the store of the queues contains. */
async function contentOf({ redisUrl, queuePrefix }: QueueBackend, databaseUrl: string): Promise<string> {
  if (redisUrl === undefined) return dumpOf(databaseUrl);
  const redis = new Redis(redisUrl);
  const keys = await redis.keys(`${queuePrefix}:*`);
  const values = await Promise.all(
    keys.map(async (key) => {
      const type = await redis.type(key);
      if (type === 'hash') return redis.hgetall(key);
      if (type === 'stream') return redis.xrange(key, '-', '+');
      return type === 'string' ? redis.get(key) : type;
    }),
  );
  redis.disconnect();
  return JSON.stringify([keys, values]);
}

const LIMIT = { calls: 12, windowSeconds: 4 };
/** The largest difference between two rounded clocks of one machine. */
const ROUNDED_MS = 5;

describeOnBothBackends('a service', ({ name, queuePrefix }) => {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let service: Service;
  /** A separate server, which the tests stop. */
  let redis: RedisServer | undefined;
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'queues-'));
    if (name === 'Redis') redis = await startRedis(findRedisServer() ?? '', folder);
    const env = { REDIS_URL: redis?.url ?? '', QUEUE_PREFIX: queuePrefix, PLATFORM_TIMEOUT_SECONDS: '60' };
    mirror = await newMirror({ ...LIMIT, env });
    service = await mirror.start();
  });
  afterAll(() => redis?.stop('SIGKILL'));

  const put = (id: string) =>
    service.call('PUT', `/v1/providers/${id}`, {
      body: { email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' },
    });
  const isSynced = async (id: string) =>
    expect((await settledPerson(service, `providers/${id}`)).sync.state).toBe('synced');
  const arrivals = () => mirror.simulator.state.arrivals.list();

  test('completes an import within the limit', async () => {
    const lines = many(15, 'p').map((id) => providerLine(id));
    const { id } = await service.startImport('kind=providers', [providersCsv(lines)]);
    const ended = await service.importEnded(id);
    expect([ended.state, ended.counts.created]).toEqual(['completed', 15]);
    const { largestWindow } = mirror.simulator.state.arrivals.stats(LIMIT.windowSeconds).userManagement;
    expect(largestWindow.all).toBeLessThanOrEqual(LIMIT.calls);
  });

  test('pauses after a 429 as long as the platform asks', async () => {
    const before = arrivals().length;
    mirror.trouble({ kind: 'rate-limit', retryAfter: 'seconds', retryAfterSeconds: 2 });
    await put('paused');
    await isSynced('paused');
    const [refused, next] = arrivals().slice(before);
    expect([refused?.status, next?.status]).toEqual([429, 200]);
    expect((next?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThanOrEqual(2_000 - ROUNDED_MS);
  });

  test('finds due work whose notification was lost', async () => {
    mirror.trouble({ kind: 'rate-limit', retryAfter: 'seconds', retryAfterSeconds: 3_600 });
    await put('lost');
    const paused = async () => (await mirror.sql('SELECT FROM call_budgets WHERE blocked_until > now()')).length > 0;
    await until('the calls are paused', paused);
    await delay(2_000); // the last notifications of this pause are handled by then
    if (redis) await askRedis(redis.port, 'FLUSHALL');
    await mirror.sql('UPDATE call_budgets SET blocked_until = NULL');
    await mirror.sql('DELETE FROM circuit_breakers');
    await mirror.sql('UPDATE people SET due_at = now() WHERE due_at IS NOT NULL');
    await isSynced('lost');
  });

  test('continues the work of a killed process when its lease ends', async () => {
    mirror.hold({ operation: 'checkUser' });
    const before = mirror.arrivals('checkUser');
    await put('killed');
    await until('its check is in flight', () => mirror.arrivals('checkUser') > before);
    await service.kill('SIGKILL');
    mirror.release();
    // The lease ends with the life of its process, long before the call would time out.
    const [lease] = await mirror.sql<{ seconds: number }>(
      `SELECT extract(epoch FROM greatest(lease_safe_at, alive_until) - now())::float8 AS seconds
       FROM people p JOIN workers w ON w.id = lease_owner WHERE external_id = 'killed'`,
    );
    expect(lease?.seconds).toBeLessThanOrEqual(10);
    await redis?.stop('SIGKILL'); // Redis is still down when the next process starts
    service = await mirror.start();
    await isSynced('killed');
    expect(mirror.usersOf('killed')).toHaveLength(1);
    if (!redis) expect(await service.kill('SIGTERM')).toBe(0);
  });

  if (name === 'PostgreSQL') return;
  test('works without Redis, reports it once, and stops with 0 while Redis is down', async () => {
    const { reason } = await partIs(service, 'queue', 'degraded');
    expect(reason).toContain('REDIS_URL');
    await put('away');
    await isSynced('away');
    redis = await startRedis(findRedisServer() ?? '', folder, redis?.port);
    await service.printed(/the store of the queues is available again/);
    await partIs(service, 'queue', 'ok');
    await put('back');
    await isSynced('back');
    await redis.stop('SIGKILL');
    expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
    expect(await service.kill('SIGTERM')).toBe(0);
    // A line of another form would be a whole connection with its password, printed by a library.
    const lines = service.output().trim().split('\n');
    expect(lines.filter((line) => !/^\{"level":"(info|warn)"/.test(line))).toEqual([]);
    expect(service.output()).not.toContain('redis://');
    expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  });
});

/** Prints when its event loop gets time, and when the worker works. */
const WORKER = `
  const { workerOptions } = require('./dist/src/queue/backend/backend.js');
  const { BoundedWorker } = require('./dist/src/queue/backend/bounded.js');
  setTimeout(() => process.stdout.write('free;'), 500);
  const work = async () => process.stdout.write('works;');
  const options = workerOptions({ DATABASE_URL: process.argv[1], QUEUE_PREFIX: 'first-connection' });
  new BoundedWorker('inbox', work, { ...options, runRetryDelay: 100 });
`;

test('a worker whose first connection fails does not block its process, and works later', async () => {
  const database = await freshDatabase();
  const url = new URL(database.url);
  const target = Number(url.port);
  let isBack = false;
  const door = createServer((client) => {
    if (!isBack) return client.destroy();
    const upstream = connect(target, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    return client.pipe(upstream).pipe(client);
  }).listen(0, '127.0.0.1');
  await once(door, 'listening');
  url.port = String((door.address() as AddressInfo).port);
  const env = { DATABASE_URL: database.url, QUEUE_PREFIX: 'first-connection' };
  await prepareQueueStore(env as Parameters<typeof prepareQueueStore>[0], database.url);
  const queue = new BoundedQueue('inbox', workerOptions(env as Parameters<typeof workerOptions>[0]));
  const worker = execFile(process.execPath, ['-e', WORKER, url.toString()]);
  let output = '';
  worker.stdout?.on('data', (text: string) => {
    output += text;
  });
  await until('the process is free', () => output.includes('free;'));
  isBack = true;
  await queue.add('notify', {});
  await until('the worker works', () => output.includes('works;'));
  worker.kill('SIGKILL');
  await queue.close();
  door.close();
  await database.drop();
});
