import { EventEmitter } from 'node:events';
import { Logger } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { StoreWatch } from './store-watch.js';

const MINUTE_MS = 60_000;
const lines: string[] = [];
let isAvailable = true;

/** The part of a queue that the watch uses. */
class Store extends EventEmitter {
  isPaused = async () => {
    if (!isAvailable) throw new Error('unavailable');
    return false;
  };
}

let queues: Store[];
let watch: StoreWatch;
beforeEach(() => {
  jest.useFakeTimers();
  lines.length = 0;
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => lines.push('unavailable'));
  jest.spyOn(Logger.prototype, 'log').mockImplementation(() => lines.push('back'));
  queues = [new Store(), new Store(), new Store()];
  const clock = Object.assign(new Clock(), { monotonicMs: () => Date.now() });
  watch = new StoreWatch(queues as unknown as Queue[], clock);
  isAvailable = true;
});
afterEach(() => {
  watch.onModuleDestroy();
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Advances time while every connection fails every five seconds. */
async function fails(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5_000) {
    for (const queue of queues) queue.emit('error', new Error('ECONNREFUSED'));
    await jest.advanceTimersByTimeAsync(5_000);
  }
}

test('logs one line when the store becomes unavailable and one when it is back, regardless of how many connections fail', async () => {
  isAvailable = false;
  await fails(50_000);
  expect(lines).toEqual(['unavailable']);
  expect(watch.unavailableSince).toBeInstanceOf(Date);
  isAvailable = true;
  await jest.advanceTimersByTimeAsync(5_000);
  expect(lines).toEqual(['unavailable', 'back']);
  expect(watch.unavailableSince).toBeUndefined();
});

test('logs a reminder every minute while the store is unavailable, even without commands', async () => {
  isAvailable = false;
  await fails(5_000);
  await jest.advanceTimersByTimeAsync(3 * MINUTE_MS);
  expect(lines).toEqual(Array(4).fill('unavailable'));
});

test('logs at most two lines a minute about a store that answers and fails in turn', async () => {
  await fails(10 * MINUTE_MS);
  expect(lines.filter((line) => line === 'unavailable').length).toBeLessThanOrEqual(11);
  expect(lines.length).toBeLessThanOrEqual(22);
});

test('logs nothing after the process has stopped', async () => {
  watch.onModuleDestroy();
  isAvailable = false;
  await fails(2 * MINUTE_MS);
  expect(lines).toEqual([]);
});
