import { MemoryQueue } from '../../../harness/memory-queue/memory-queue.js';
import { MemoryStore } from '../../../harness/memory-queue/memory-store.js';
import { WorldClock } from '../../../harness/world/time.js';
import type { Env } from '../../config/env.js';
import { Stopping } from '../../config/stopping.js';
import { type DueRow, type Fed, Feeder, QUEUE_LENGTH } from './feeder.js';
import { Intervals } from './intervals.js';
import { WorkQueue } from './work-queue.js';
import type { JobQueue } from './work-store.js';

const env = { hasRole: () => true } as unknown as Env;
const rows = (count: number, urgent?: boolean, from = 0): DueRow[] =>
  Array.from({ length: count }, (_, at) => ({ id: `${urgent ? 'u' : 'r'}${from + at}`, urgent }));

/** A feeder, and a queue whose due rows a test chooses. */
function feeding(more: Partial<Fed> = {}) {
  const clock = new WorldClock();
  const store = new MemoryStore(clock);
  const jobs = new MemoryQueue('pushes', { connection: store });
  const queue = new WorkQueue(jobs as unknown as JobQueue, { failed: () => undefined, answered: () => undefined });
  const intervals = new Intervals(env, clock, new Stopping());
  const feeder = new Feeder(intervals);
  const due: { rows: DueRow[] } = { rows: [] };
  feeder.feed({ queue, due: async () => due.rows, ...more });
  const order = async () =>
    (await jobs.getJobs(['waiting', 'prioritized'], 0, -1, true)).map(({ data }) => (data as DueRow).id);
  return { clock, store, jobs, queue, intervals, feeder, due, order };
}

test('adds what is due once a second, and nothing twice', async () => {
  const { clock, intervals, due, order } = feeding();
  intervals.onApplicationBootstrap();
  due.rows = rows(2);
  for (let seconds = 0; seconds < 3; seconds += 1) {
    clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(await order()).toEqual(['r0', 'r1']);
  await intervals.onModuleDestroy();
});

test('lets at most fifty rows wait, so that a hold takes effect soon', async () => {
  const { feeder, due, order } = feeding();
  due.rows = rows(200, false);
  await feeder.round();
  due.rows = rows(200, false, 100);
  await feeder.round();
  expect(await order()).toEqual(rows(QUEUE_LENGTH, false).map(({ id }) => id));
});

test('adds urgent rows although the queue is full, in front of the others', async () => {
  const { feeder, due, order } = feeding();
  due.rows = rows(200, false);
  await feeder.round();
  due.rows = [...rows(3, true), ...due.rows];
  await feeder.round();
  expect((await order()).slice(0, 4)).toEqual(['u0', 'u1', 'u2', 'r0']);
});

test('moves a waiting row that became urgent to the front, and leaves those that are urgent already where they are', async () => {
  const { feeder, due, order } = feeding();
  due.rows = [...rows(2, true), ...rows(3, false)];
  await feeder.round();
  due.rows = [{ id: 'r1', urgent: true }, ...due.rows];
  for (let rounds = 0; rounds < 3; rounds += 1) await feeder.round();
  expect(await order()).toEqual(['u0', 'u1', 'r1', 'r0', 'r2']);
});

test('adds again what a wiped store lost, and sets its global concurrency and schedules', async () => {
  const { feeder, due, order, store, jobs } = feeding({
    concurrency: 8,
    schedules: [{ id: 'seals', everyMs: 60_000 }],
  });
  due.rows = rows(2);
  await feeder.round();
  store.wipe();
  expect([await jobs.getGlobalConcurrency(), await jobs.getJobSchedulers()]).toEqual([null, []]);
  await feeder.round();
  expect(await order()).toEqual(['seals', 'r0', 'r1']);
  expect(await jobs.getGlobalConcurrency()).toBe(8);
  expect(await jobs.getJobSchedulers()).toMatchObject([{ key: 'seals' }]);
});

test('a queue whose rows cannot be read stops no other', async () => {
  const { feeder, due, order } = feeding();
  const broken = feeding();
  feeder.feed({
    queue: broken.queue,
    due: async () => {
      throw Object.assign(new Error(), { code: '57P01' });
    },
  });
  due.rows = rows(1);
  await feeder.round();
  expect(await order()).toEqual(['r0']);
});

test('a store that is away loses no row: the next round adds it', async () => {
  const { feeder, due, order, store } = feeding();
  due.rows = rows(1);
  store.isAway = true;
  await feeder.round();
  store.isAway = false;
  await feeder.round();
  expect(await order()).toEqual(['r0']);
});
