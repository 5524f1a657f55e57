import { Logger } from '@nestjs/common';
import { WorldClock } from '../../../harness/world/time.js';
import type { Env } from '../../config/env.js';
import { Stopping } from '../../config/stopping.js';
import { Intervals } from './intervals.js';

afterEach(() => jest.restoreAllMocks());

/** Repeated work in a process with the role. Its runs begin once time has passed. */
function repeating(role = 'worker') {
  const clock = new WorldClock();
  const stopping = new Stopping();
  const intervals = new Intervals({ hasRole: (asked: string) => asked === role } as unknown as Env, clock, stopping);
  const runs: string[] = [];
  const pass = async (seconds: number) => {
    for (let passed = 0; passed < seconds; passed += 1) {
      clock.advance(1_000);
      await new Promise(setImmediate);
    }
  };
  const note = (name: string) => async () => void runs.push(name);
  return { stopping, intervals, runs, pass, note };
}

test('repeats each work at its own interval', async () => {
  const { intervals, runs, pass, note } = repeating();
  intervals.every(1_000, 'a', note('a'));
  intervals.every(3_000, 'b', note('b'));
  intervals.onApplicationBootstrap();
  await pass(3);
  expect(runs.sort()).toEqual(['a', 'a', 'a', 'b']);
});

test('a run that takes long delays no other work, and never overlaps with itself', async () => {
  const { intervals, runs, pass, note } = repeating();
  let end = () => {};
  intervals.every(1_000, 'long', () => {
    runs.push('long');
    return new Promise((resolve) => (end = resolve));
  });
  intervals.every(1_000, 'short', note('short'));
  intervals.onApplicationBootstrap();
  await pass(2);
  expect(runs).toEqual(['long', 'short', 'short']);
  end();
  await new Promise(setImmediate);
  await pass(1);
  expect(runs.filter((name) => name === 'long')).toHaveLength(2);
});

test('repeats work that failed, and logs it once', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const { intervals, runs, pass } = repeating();
  intervals.every(1_000, 'broken', async () => {
    runs.push('broken');
    throw new Error('out of order');
  });
  intervals.onApplicationBootstrap();
  await pass(3);
  expect([runs.length, warn.mock.calls.length]).toEqual([3, 1]);
});

test('has one log line for all work that a lost database fails', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const { intervals, pass } = repeating();
  for (const name of ['a', 'b'])
    intervals.every(1_000, name, () => Promise.reject(Object.assign(new Error(), { code: '57P01' })));
  intervals.onApplicationBootstrap();
  await pass(3);
  expect(warn.mock.calls).toEqual([[{ msg: 'PostgreSQL is unavailable, so due rows wait', code: '57P01' }]]);
});

test('begins nothing once the process stops, and waits for the run in progress', async () => {
  const { stopping, intervals, runs, pass, note } = repeating();
  let end = () => {};
  intervals.every(1_000, 'begun', () => new Promise((resolve) => (end = resolve)));
  intervals.every(2_000, 'later', note('later'));
  intervals.onApplicationBootstrap();
  await pass(1);
  stopping.startShutdown();
  const stopped = intervals.onModuleDestroy().then(() => runs.push('stopped'));
  await pass(5);
  expect(runs).toEqual([]);
  end();
  await stopped;
  expect(runs).toEqual(['stopped']);
});

test('a run that never ends delays a shutdown by a second at most', async () => {
  const { intervals, pass } = repeating();
  intervals.every(1_000, 'hanging', () => new Promise(() => undefined));
  intervals.onApplicationBootstrap();
  await pass(1);
  const beganMs = performance.now();
  await intervals.onModuleDestroy();
  expect(performance.now() - beganMs).toBeLessThan(3_000);
});

test('repeats nothing in a process without the role worker', async () => {
  const { intervals, runs, pass, note } = repeating('api');
  intervals.every(1_000, 'a', note('a'));
  intervals.onApplicationBootstrap();
  await pass(5);
  expect(runs).toEqual([]);
});
