import { Logger } from '@nestjs/common';
import { type Job, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { until } from '../harness/until.js';
import { prepareQueueStore, producerOptions, workerOptions } from '../src/queue/backend/backend.js';
import { BoundedWorker } from '../src/queue/backend/bounded.js';
import { type Notification, USER_MANAGEMENT_QUEUE } from '../src/queue/backend/queue-names.js';
import { describeOnBothBackends, type QueueBackend } from './support/backends.js';
import { dumpOf } from './support/database-dump.js';
import { freshDatabase } from './support/databases.js';
import { canary, Searcher } from './support/privacy/canaries.js';

const PERSON = canary('Person');
const PLANTED = canary('Planted');

/** Errors as libraries throw them: the message, the stack and whatever else hangs on them quote a person. */
const FAILURES: [code: string, fail: () => unknown][] = [
  ['database-23505', () => Object.assign(new Error(`Key (email)=(${PERSON})\n    at ${PERSON}`), { code: '23505' })],
  ['AxiosError', () => Object.assign(new Error(PERSON), { name: 'AxiosError', response: { data: PERSON } })],
  [
    'Error',
    () => Object.assign(new Error('a message of now'), { stack: `Error: of then\n    at ${PERSON} (x.js:1:1)` }),
  ],
  ['Error', () => new Error('outer', { cause: new Error(PERSON) })],
  ['unknown', () => Object.assign(new Error('x'), { name: `${PERSON} 1`, code: PERSON })],
  ['unknown', () => `no error, but ${PERSON}`],
];

describeOnBothBackends('what an activation leaves in its queue', (backend) => {
  let logged = '';
  let database: Awaited<ReturnType<typeof freshDatabase>>;
  let failed: Job[];
  let held: string;

  beforeAll(async () => {
    const note = (...words: unknown[]) => {
      logged += JSON.stringify(words);
    };
    Logger.overrideLogger({ log: note, warn: note, error: note });
    database = await freshDatabase();
    const env = { REDIS_URL: backend.redisUrl, QUEUE_PREFIX: backend.queuePrefix, DATABASE_URL: database.url };
    await prepareQueueStore(env, database.url);
    const queue = new Queue<Notification>(USER_MANAGEMENT_QUEUE, producerOptions(env));
    const left = [...FAILURES];
    const activate = async () => {
      const failure = left.shift();
      if (failure) throw failure[1]();
      return { email: PERSON };
    };
    const worker = new BoundedWorker(USER_MANAGEMENT_QUEUE, activate, workerOptions(env));
    await queue.waitUntilReady();
    for (let made = 0; made <= FAILURES.length; made++) await queue.add('notify', { reason: PLANTED });
    await until('all failed, and one did not', async () => {
      const { failed: faults, completed } = await queue.getJobCounts('failed', 'completed');
      return faults === FAILURES.length && completed === 1;
    });
    failed = await queue.getFailed();
    await Promise.all([worker.close(), queue.close()]);
    held = await heldBy(backend, database.url);
  });
  afterAll(async () => {
    Logger.overrideLogger(false);
    await database.drop();
  });

  test('is a code of ours where it failed, and no stack', () => {
    const codes = failed.map(({ failedReason }) => failedReason);
    expect(codes.sort()).toEqual(FAILURES.map(([code]) => code).sort());
    expect(failed.flatMap(({ stacktrace }) => stacktrace)).toEqual([]);
  });

  test('is nothing of its error, nor of what it worked out', () => {
    expect(held).toContain(PLANTED);
    expect(new Searcher().finds(held.replaceAll(PLANTED, ''))).toEqual([]);
  });

  test('stands in the log by the kind and the place of its fault', () => {
    expect(logged).toContain('an activation failed');
    expect(logged).toContain('queue-failures.e2e-spec');
    expect(new Searcher().finds(logged)).toEqual([]);
  });
});

/** All that the store of the queues holds. */
async function heldBy({ redisUrl, queuePrefix }: QueueBackend, databaseUrl: string): Promise<string> {
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
