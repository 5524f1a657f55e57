import { Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { StoreWatch } from './store-watch.js';

const MINUTE_MS = 60_000;
const lines: string[] = [];
let isAvailable = true;

const UNAVAILABLE = new Error('unavailable');
const READONLY = Object.assign(new Error("READONLY You can't write against a read only replica."), {
  name: 'ReplyError',
});

let watch: StoreWatch;
beforeEach(() => {
  jest.useFakeTimers();
  lines.length = 0;
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => lines.push('unavailable'));
  jest.spyOn(Logger.prototype, 'log').mockImplementation(() => lines.push('back'));
  const clock = Object.assign(new Clock(), { monotonicMs: () => Date.now() });
  watch = new StoreWatch(async () => {
    if (!isAvailable) throw UNAVAILABLE;
  }, clock);
  isAvailable = true;
});
afterEach(() => {
  watch.stop();
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Advances time while every connection fails every five seconds. */
async function fails(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5_000) {
    for (let connection = 1; connection <= 3; connection += 1) watch.failed(UNAVAILABLE);
    await jest.advanceTimersByTimeAsync(5_000);
  }
}

test('logs one line when the store becomes unavailable and one when it is back, regardless of how many connections fail', async () => {
  isAvailable = false;
  await fails(50_000);
  expect(lines).toEqual(['unavailable']);
  expect(watch.since).toBeInstanceOf(Date);
  isAvailable = true;
  await jest.advanceTimersByTimeAsync(5_000);
  expect(lines).toEqual(['unavailable', 'back']);
  expect(watch.since).toBeUndefined();
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
  watch.stop();
  isAvailable = false;
  await fails(2 * MINUTE_MS);
  expect(lines).toEqual([]);
});

test('names a reply of the store rather than what follows from it, until the store is silent', async () => {
  isAvailable = false;
  watch.failed(READONLY);
  await fails(5_000);
  expect(watch.fault).toContain('read-only replica');
  await fails(15_000);
  expect(watch.fault).toContain('cannot be reached');
});
