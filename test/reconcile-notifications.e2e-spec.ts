import { randomUUID } from 'node:crypto';
import { Queue, Worker } from 'bullmq';
import { until } from '../harness/until.js';
import { Clock } from '../src/config/clock.js';
import { prepareQueueStore, producerOptions, workerOptions } from '../src/queue/backend/backend.js';
import { type Notification, USER_MANAGEMENT_QUEUE } from '../src/queue/backend/queue-names.js';
import { QueueNotifier } from '../src/queue/notifier/queue-notifier.js';
import { StoreWatch } from '../src/queue/notifier/store-watch.js';
import { describeOnBothBackends } from './support/backends.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';

describeOnBothBackends('a notification', (backend) => {
  let database: TestDatabase;
  let queue: Queue<Notification>;
  let worker: Worker<Notification>;
  let notifier: QueueNotifier;

  beforeAll(async () => {
    database = await freshDatabase();
    const env = { REDIS_URL: backend.redisUrl, QUEUE_PREFIX: backend.queuePrefix, DATABASE_URL: database.url };
    await prepareQueueStore(env, database.url);
    queue = new Queue(USER_MANAGEMENT_QUEUE, producerOptions(env));
    worker = new Worker(USER_MANAGEMENT_QUEUE, null, workerOptions(env));
    notifier = notifierWith(new Clock());
    await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  });
  afterAll(async () => {
    await notifier.onModuleDestroy();
    await Promise.all([worker.close(true), queue.close()]);
    await database.drop();
  });
  const notifierWith = (clock: Clock) =>
    new QueueNotifier(new Map([[USER_MANAGEMENT_QUEUE, queue]]), clock, new StoreWatch([queue], clock));
  const heard = () => worker.getNextJob(randomUUID(), { block: false });

  test('that notifies many times before it is heard is heard once, or once for each second that passes', async () => {
    const begun = performance.now();
    for (let ring = 0; ring < 20; ring++) notifier.notify(USER_MANAGEMENT_QUEUE, 'test');
    const job = await until('it is heard', heard);
    const again = await queue.getWaitingCount();
    // Unless this machine stood still for a second, that is none.
    expect(again).toBeLessThanOrEqual(Math.floor((performance.now() - begun) / 1_000));
    await job.removeDeduplicationKey();
  });

  test('that notifies many times for one moment notifies once for it', async () => {
    const fixed = new Date();
    const notifier = notifierWith(Object.assign(new Clock(), { now: () => fixed, monotonicMs: () => 0 }));
    const moment = new Date(fixed.getTime() + 3_600_000);
    for (let ring = 0; ring < 20; ring++) notifier.notify(USER_MANAGEMENT_QUEUE, 'test', moment);
    await notifier.onModuleDestroy();
    await until('it is to ring', async () => (await queue.getDelayedCount()) > 0);
    expect(await queue.getDelayedCount()).toBe(1);
  });

  test('that is to ring after a while notifies then, whatever this process takes for the time', async () => {
    const [before, waiting] = [await queue.getDelayedCount(), await queue.getWaitingCount()];
    const ahead = notifierWith(
      Object.assign(new Clock(), { now: () => new Date(Date.now() + 7_200_000), monotonicMs: () => 0 }),
    );
    ahead.notify(USER_MANAGEMENT_QUEUE, 'test', 3_600_000);
    await ahead.onModuleDestroy();
    await until('it is to ring', async () => (await queue.getDelayedCount()) > before);
    expect(await queue.getWaitingCount()).toBe(waiting);
  });

  test('that a killed worker took with it notifies again', async () => {
    notifier.notify(USER_MANAGEMENT_QUEUE, 'test');
    await until('somebody takes it, and dies before it answers', heard);
    const rungAgain = async () => {
      notifier.notify(USER_MANAGEMENT_QUEUE, 'poll');
      return heard();
    };
    await until('it notifies again', rungAgain);
  });
});
