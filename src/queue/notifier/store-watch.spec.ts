import { EventEmitter } from 'node:events';
import { Logger } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { Clock } from '../../config/clock.js';
import { StoreWatch } from './store-watch.js';

const MINUTE_MS = 60_000;
const lines: string[] = [];
let isThere = true;

/** As far as the watch looks at it. */
class Store extends EventEmitter {
  isPaused = async () => {
    if (!isThere) throw new Error('away');
    return false;
  };
}

let queues: Store[];
let watch: StoreWatch;
beforeEach(() => {
  jest.useFakeTimers();
  lines.length = 0;
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => lines.push('away'));
  jest.spyOn(Logger.prototype, 'log').mockImplementation(() => lines.push('back'));
  queues = [new Store(), new Store(), new Store()];
  const clock = Object.assign(new Clock(), { monotonicMs: () => Date.now() });
  watch = new StoreWatch(queues as unknown as Queue[], clock);
  isThere = true;
});
afterEach(() => {
  watch.onModuleDestroy();
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Lets time pass in which every connection fails each five seconds. */
async function fails(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5_000) {
    for (const queue of queues) queue.emit('error', new Error('ECONNREFUSED'));
    await jest.advanceTimersByTimeAsync(5_000);
  }
}

test('a store that goes away and comes back is one line each, however many connections fail', async () => {
  isThere = false;
  await fails(50_000);
  expect(lines).toEqual(['away']);
  expect(watch.awaySince).toBeInstanceOf(Date);
  isThere = true;
  await jest.advanceTimersByTimeAsync(5_000);
  expect(lines).toEqual(['away', 'back']);
  expect(watch.awaySince).toBeUndefined();
});

test('one that stays away is told again each minute, also when nothing asks it', async () => {
  isThere = false;
  await fails(5_000);
  await jest.advanceTimersByTimeAsync(3 * MINUTE_MS);
  expect(lines).toEqual(['away', 'away', 'away', 'away']);
});

test('one that answers and fails in turn is told at most twice a minute', async () => {
  await fails(10 * MINUTE_MS);
  expect(lines.filter((line) => line === 'away').length).toBeLessThanOrEqual(11);
  expect(lines.length).toBeLessThanOrEqual(22);
});

test('a process that stops says nothing more', async () => {
  watch.onModuleDestroy();
  isThere = false;
  await fails(2 * MINUTE_MS);
  expect(lines).toEqual([]);
});
