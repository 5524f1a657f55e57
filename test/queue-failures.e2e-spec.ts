import { Logger } from '@nestjs/common';
import { Queue } from 'bullmq';
import { until } from '../harness/until.js';
import { prepareQueueStore, producerOptions, workerOptions } from '../src/queue/backend/backend.js';
import { BoundedWorker } from '../src/queue/backend/bounded.js';
import { type Notification, USER_MANAGEMENT_QUEUE } from '../src/queue/backend/queue-names.js';
import { describeOnBothBackends } from './support/backends.js';
import { freshDatabase } from './support/databases.js';

describeOnBothBackends('an activation that fails', (backend) => {
  beforeAll(() => Logger.overrideLogger(false));

  test('leaves the kind and the place of its fault in the queue, and nothing that its message quotes', async () => {
    const database = await freshDatabase();
    const env = { REDIS_URL: backend.redisUrl, QUEUE_PREFIX: backend.queuePrefix, DATABASE_URL: database.url };
    await prepareQueueStore(env, database.url);
    const queue = new Queue<Notification>(USER_MANAGEMENT_QUEUE, producerOptions(env));
    const fails = async () => {
      throw Object.assign(new Error('Key (email)=(ada.osei@example.org)\n    at Ada Osei'), { code: '23505' });
    };
    const worker = new BoundedWorker(USER_MANAGEMENT_QUEUE, fails, workerOptions(env));
    await queue.waitUntilReady();
    await queue.add('ring', { reason: 'test' });
    const [job] = await until('it has failed', async () => {
      const failed = await queue.getFailed();
      return failed.length > 0 ? failed : undefined;
    });
    await Promise.all([worker.close(), queue.close()]);
    await database.drop();
    expect(job?.failedReason).toBe('Error 23505');
    expect(job?.stacktrace?.join()).toContain('queue-failures.e2e-spec');
    expect(JSON.stringify(job)).not.toMatch(/ada|osei/i);
  });
});
