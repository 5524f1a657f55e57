import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { WorkerOptions } from 'bullmq';
import { freePort } from '../../../harness/free-port.js';
import { startProxyOf } from '../../../harness/tcp-proxy.js';
import { until } from '../../../harness/until.js';
import { Clock } from '../../../src/config/clock.js';
import { createQueueTables } from '../../../src/queue/backend/queue-tables.js';
import { WORKER } from '../../../src/queue/work/host.js';
import { PostgresWorkStore } from '../../../src/queue/work/postgres-store.js';
import { RedisWorkStore } from '../../../src/queue/work/redis-store.js';
import { WorkQueues } from '../../../src/queue/work/work-queues.js';
import type { WorkStore } from '../../../src/queue/work/work-store.js';
import { freshDatabase } from '../../support/databases.js';
import { harmedRedis } from '../../support/work-stores.js';

const closing: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

const queuesOf = (store: WorkStore) => {
  const queues = new WorkQueues(store);
  closing.push(() => queues.onApplicationShutdown());
  return queues;
};

test('an add to a Redis that was never reached is dropped, because each one that waits holds 5 kB', async () => {
  const port = await freePort();
  const queue = queuesOf(new RedisWorkStore(`redis://127.0.0.1:${port}`, 'test', new Clock())).of('pushes');
  await Promise.all(Array.from({ length: 100 }, (_, at) => queue.add(`lost-${at}`)));
  const store = await harmedRedis(port);
  closing.push(store.close, store.database.drop);
  await until('an add arrives', async () => {
    await queue.add('late');
    return (await queue.waiting())?.size;
  });
  expect([...((await queue.waiting()) ?? new Map()).keys()]).toEqual(['late']);
});

test('adds continue within seconds after the connection to Redis fell silent, as after a failover', async () => {
  const redis = await harmedRedis();
  closing.push(redis.close, redis.database.drop);
  const { proxy, url } = await startProxyOf(redis.env.REDIS_URL ?? '');
  closing.push(proxy.close);
  const queue = queuesOf(new RedisWorkStore(url.href, 'test', new Clock())).of('pushes');
  await until('an add arrives', async () => {
    await queue.add('before');
    return (await queue.waiting())?.size === 1;
  });
  proxy.silence();
  const silentMs = performance.now();
  await until('an add arrives', async () => {
    await queue.add('after');
    return (await queue.waiting())?.size === 2;
  });
  expect(performance.now() - silentMs).toBeLessThan(15_000);
});

/** A proxy that drops the first LISTEN, and everything that follows it on its connection. */
async function dropFirstListen(target: string): Promise<string> {
  const url = new URL(target);
  const port = Number(url.port);
  const sockets: Socket[] = [];
  let dropped: Socket | undefined;
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    sockets.push(client, upstream);
    upstream.on('error', () => undefined).pipe(client);
    client
      .on('error', () => undefined)
      .on('data', (bytes) => {
        if (!dropped && /listen/i.test(bytes.toString('latin1'))) dropped = client;
        if (dropped !== client) upstream.write(bytes);
      });
    client.on('close', () => upstream.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url.port = String((server.address() as AddressInfo).port);
  closing.push(async () => {
    for (const socket of sockets) socket.destroy();
    await once(server.close(), 'close');
  });
  return url.href;
}

test('a worker listens again after PostgreSQL did not answer its LISTEN', async () => {
  const database = await freshDatabase();
  closing.push(database.drop);
  await createQueueTables(database.url);
  const store = new PostgresWorkStore(await dropFirstListen(database.url), new Clock());
  const queues = queuesOf(store);
  const done: string[] = [];
  const options = { ...store.workerOptions, ...WORKER } as WorkerOptions;
  const worker = new store.workerClass('pushes', async ({ data }) => void done.push(data.id), options);
  closing.push(() => worker.close());
  void worker.run();
  await delay(500);
  await queues.of('pushes').add('row');
  await until('the row is worked on', () => done.length > 0);
  expect(done).toEqual(['row']);
}, 60_000);
