import { Clock } from '../../config/clock.js';
import { QueueNotifier } from './queue-notifier.js';

/** A planned queue, with the delays of its activations and the number of computations. */
function plannedQueue(nextInMs: () => Promise<number | null> = async () => 0) {
  const delays: number[] = [];
  let computed = 0;
  const clock = Object.assign(new Clock(), { monotonicMs: () => 1_000 });
  const store = { add: async () => undefined, health: async () => ({ status: 'ok' as const }) };
  const notifier = new QueueNotifier(clock, store, { wakeIn: (ms) => delays.push(ms - 1_000) });
  notifier.planned('compliance', () => {
    computed += 1;
    return nextInMs();
  });
  return {
    delays,
    computed: () => computed,
    notify: (withinMs: number) => notifier.notify('compliance', withinMs),
    planAt: (inMs: number) => notifier.planAt('compliance', inMs),
  };
}

test('a notification computes nothing if an activation starts in time', () => {
  const queue = plannedQueue();
  queue.planAt(200);
  queue.notify(250);
  expect(queue.computed()).toBe(0);
  queue.notify(100);
  expect(queue.computed()).toBe(1);
});

test('an activation whose time has come may have begun, so a notification computes the next one', () => {
  const queue = plannedQueue();
  queue.planAt(0);
  queue.notify(250);
  expect(queue.computed()).toBe(1);
});

test('a computed time never postpones a waiting activation', () => {
  const queue = plannedQueue();
  queue.planAt(200);
  queue.planAt(60_000);
  queue.planAt(100);
  expect(queue.delays).toEqual([200, 100]);
});

test('a time from elsewhere during a computation leads to another computation', async () => {
  let answer = (_: number) => {};
  const queue = plannedQueue(() => new Promise((resolve) => (answer = resolve)));
  queue.notify(0);
  queue.planAt(60_000);
  expect(queue.delays).toEqual([]);
  answer(300);
  await new Promise(setImmediate);
  expect([queue.delays, queue.computed()]).toEqual([[300], 2]);
});
