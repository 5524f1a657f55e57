import { Logger } from '@nestjs/common';
import { MemoryQueue } from '../../../harness/memory-queue/memory-queue.js';
import { MemoryStore } from '../../../harness/memory-queue/memory-store.js';
import { MemoryWorker } from '../../../harness/memory-queue/memory-worker.js';
import { WorldClock } from '../../../harness/world/time.js';
import { Stopping } from '../../config/stopping.js';
import { Host, type WorkerLimits } from './host.js';
import { WorkQueue } from './work-queue.js';
import type { JobQueue, WorkStore } from './work-store.js';

let logged: jest.SpyInstance;
beforeEach(() => {
  logged = jest.spyOn(Logger.prototype, 'error').mockImplementation(() => undefined);
});

/** Works on rows whose ids say how often they are due again at once, or that they throw. */
class Counting extends Host {
  readonly done: string[] = [];
  readonly postponed: string[] = [];
  readonly left = new Map<string, number>();

  protected override async work(id: string): Promise<boolean> {
    if (id.startsWith('poison')) throw new Error('a text that quotes a name');
    if (id.startsWith('away')) throw Object.assign(new Error(), { code: 'ECONNREFUSED' });
    this.done.push(id);
    const left = (this.left.get(id) ?? Number(id)) - 1;
    this.left.set(id, left);
    return left > 0;
  }

  protected override async postpone(id: string): Promise<void> {
    this.postponed.push(id);
    if (id === 'poison-twice') throw new Error('it cannot be stored either');
  }
}

function hosting(limits: WorkerLimits = { concurrency: 1 }) {
  const store = new MemoryStore(new WorldClock());
  const jobs = new MemoryQueue('counts', { connection: store });
  const queue = new WorkQueue(jobs as unknown as JobQueue, { failed: () => undefined, answered: () => undefined });
  const host = new (Counting as unknown as new (...args: unknown[]) => Counting)(
    { failed: () => undefined } as unknown as WorkStore,
    queue,
    limits,
  );
  const stopping = new Stopping();
  Object.assign(host, { stopping });
  const worker = new MemoryWorker('counts', (job) => host.process(job as never), { connection: store, autorun: false });
  jest.spyOn(host, 'worker', 'get').mockReturnValue(worker as never);
  host.onApplicationBootstrap();
  return { store, jobs, queue, host, worker, stopping };
}

test('a row that is due again at once runs again, without another caller', async () => {
  const { store, queue, host } = hosting();
  await queue.add('3');
  await store.runDue();
  expect(host.done).toEqual(['3', '3', '3']);
});

test('a row whose work throws is postponed, stops no other, and leaves neither a job nor a line that quotes its error', async () => {
  const { store, jobs, queue, host } = hosting();
  for (const id of ['poison', 'poison-twice', '1']) await queue.add(id);
  await store.runDue();
  expect([host.postponed, host.done]).toEqual([['poison', 'poison-twice'], ['1']]);
  expect(await jobs.getJobs(['waiting', 'failed', 'completed', 'delayed'])).toEqual([]);
  expect(JSON.stringify(logged.mock.calls)).toMatch(/^(?!.*quotes a name).*tried again later/);
});

test('a row is not to blame for a database that is away', async () => {
  const { store, queue, host } = hosting();
  await queue.add('away');
  await store.runDue();
  expect(host.postponed).toEqual([]);
});

test('concurrency and limiter come from the settings, before the worker runs', async () => {
  const { worker } = hosting({ concurrency: 4, limiter: { max: 2, duration: 417 } });
  expect([worker.concurrency, worker.opts.limiter, worker.isRunning()]).toEqual([4, { max: 2, duration: 417 }, true]);
});

test('while the process ends its requests, before its workers close, no row is begun', async () => {
  const { store, queue, host, stopping } = hosting();
  stopping.startShutdown();
  await queue.add('1');
  await store.runDue();
  expect(host.done).toEqual([]);
});
