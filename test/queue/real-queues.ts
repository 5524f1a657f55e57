import type { WorkerOptions } from 'bullmq';
import type { World } from '../../harness/world/world.js';
import { withTimeout } from '../../src/config/with-timeout.js';
import type { QueueName } from '../../src/queue/backend/queue-names.js';
import { WORKER } from '../../src/queue/work/host.js';
import { WorkQueues } from '../../src/queue/work/work-queues.js';
import type { WorkStore } from '../../src/queue/work/work-store.js';

/** Longer than a worker without its store takes to close. */
const CLOSE_MS = 8_000;

export type RealQueues = ReturnType<typeof openQueues>;

/** Queues on a real store, with a worker for each name, as a process has them. */
export function openQueues(
  { eventually }: Pick<World, 'eventually'>,
  store: WorkStore,
  names: readonly QueueName[] = ['compliance'],
) {
  const queues = new WorkQueues(store);
  const done = new Map<QueueName, number>();
  const workers = names.map((name) => {
    const work = async () => void done.set(name, (done.get(name) ?? 0) + 1);
    const worker = new store.workerClass(name, work, { ...store.workerOptions, ...WORKER } as WorkerOptions);
    worker.on('error', (error) => store.failed(error));
    worker.run().catch((error: unknown) => store.failed(error));
    return worker;
  });
  const add = () => Promise.all(names.map((name) => queues.of(name).add('row')));
  const health = () => queues.health();
  const fault = async () => `${(await health()).reasons?.[0]?.values?.fault}`;
  return {
    add,
    health,
    fault,
    /** Resolves once every worker has taken a row that is added from now on. */
    work: async () => {
      done.clear();
      await eventually('every worker takes a row', async () => {
        await add();
        return done.size === names.length;
      });
    },
    isHealthy: () => eventually('the queues are healthy', async () => (await health()).status === 'ok'),
    isDegraded: (reason: string) =>
      eventually(`the queues say "${reason}"`, async () => (await fault()).includes(reason)),
    close: async () => {
      const closed = Promise.all(workers.map((worker) => worker.close())).then(() => 'closed');
      const how = await withTimeout(closed, CLOSE_MS, () => 'hangs');
      await queues.onApplicationShutdown();
      return how;
    },
  };
}
