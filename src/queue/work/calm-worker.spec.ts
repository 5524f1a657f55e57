import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { BackendFactory, ConnectionOptions, RedisQueueBackend } from 'bullmq';
import { CalmWorker } from './calm-worker.js';

/** A store whose methods are given; the others do nothing. */
function storeOf(
  methods: Record<string, () => Promise<unknown>>,
): BackendFactory<RedisQueueBackend, ConnectionOptions> {
  const known: Record<string, unknown> = {
    ...{ minimumBlockTimeout: 0.001, maximumBlockTimeout: 10, keys: {}, qualifiedName: 'test' },
    waitUntilReady: async () => undefined,
    waitForJob: () => delay(100),
    moveStalledJobsToWait: async () => [],
    moveToActive: async () => [null, null, 0, 0],
    ...methods,
  };
  const backend = new Proxy(new EventEmitter(), {
    get: (target, name) =>
      known[name as string] ??
      (name in target ? Reflect.get(target, name) : name === 'closing' ? undefined : async () => undefined),
  });
  return (() => backend) as unknown as BackendFactory<RedisQueueBackend, ConnectionOptions>;
}

const refused = async () => {
  throw new Error('NOPERM this user has no permissions');
};

test.each(['moveToActive', 'waitForJob'])('a worker whose store refuses %s asks once a second', async (method) => {
  const refuse = jest.fn(refused);
  const worker = new CalmWorker('test', async () => undefined, { connection: {} }, storeOf({ [method]: refuse }));
  await delay(1_500);
  expect(refuse.mock.calls.length).toBeLessThanOrEqual(3);
  await worker.close();
});

test('a worker without a listener prints no error', async () => {
  const print = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const worker = new CalmWorker('test', async () => undefined, { connection: {} }, storeOf({ moveToActive: refused }));
  await delay(100);
  await worker.close();
  expect(print).not.toHaveBeenCalled();
});
