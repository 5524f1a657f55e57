import { Logger } from '@nestjs/common';
import { Clock } from '../../src/config/clock.js';
import type { Env } from '../../src/config/env.js';
import { Stopping } from '../../src/config/stopping.js';
import { Database } from '../../src/database/database.js';
import { QueueStore } from '../../src/queue/backend/queue-store.js';
import { type NextDue, Poller } from '../../src/queue/notifier/poller.js';
import { QueueNotifier } from '../../src/queue/notifier/queue-notifier.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
let poller: Poller;
let stopping: Stopping;
let runs: string[];

beforeAll(() => world.sql('CREATE TABLE chores (id int PRIMARY KEY, due_at timestamptz)'));
beforeEach(() => {
  stopping = new Stopping();
  poller = newPoller('worker');
  runs = [];
});
afterEach(async () => {
  await poller.onModuleDestroy();
  await world.sql('DELETE FROM chores');
});
afterAll(() => world.sql('DROP TABLE chores'));

const newPoller = (role: string) => {
  const env = { hasRole: (asked: string) => asked === role } as unknown as Env;
  return new Poller(env, world.get(Database), world.get(Clock), stopping);
};
const chores: NextDue = (bind) => `(SELECT min(due_at) FROM chores WHERE id > ${bind(0)})`;
const add = (dueIn: string) =>
  world.sql('INSERT INTO chores SELECT count(*) + 1, clock_timestamp() + $1::interval FROM chores', [dueIn]);
const note = (name: string) => () => void runs.push(name);
/** A poll that leaves no due row. */
const doChores = async () => {
  runs.push('chores');
  await world.sql('DELETE FROM chores WHERE due_at <= clock_timestamp()');
};
const roundEnds = () => world.eventually('the round ends', () => !Reflect.get(poller, 'round') && !isAnyRunning());
const isAnyRunning = () => (Reflect.get(poller, 'polls') as { running?: unknown }[]).some(({ running }) => running);
async function pass(seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 1) {
    await world.advance('1 s');
    await roundEnds();
  }
}
/** Starts the poller, and waits for its first round. */
async function start(): Promise<void> {
  poller.onApplicationBootstrap();
  await pass(1);
}

test('runs a poll when its next row is due', async () => {
  poller.whenDue('chores', chores, doChores);
  await add('3 s');
  await start();
  await pass(1);
  expect(runs).toEqual([]);
  await pass(1);
  expect(runs).toEqual(['chores']);
});

test('finds a row without a notification within five seconds', async () => {
  poller.whenDue('chores', chores, doChores);
  await start();
  await add('0 s');
  await pass(5);
  expect(runs).toEqual(['chores']);
});

test('an idle process sends one statement for all polls every five seconds', async () => {
  for (const name of ['a', 'b', 'c', 'd']) poller.whenDue(name, chores, note(name));
  await start();
  const query = jest.spyOn(world.get(Database).pool, 'query');
  await pass(60);
  const rounds = query.mock.calls.filter(([sql]) => String(sql).includes('chores')).length;
  query.mockRestore();
  expect(runs).toEqual([]);
  expect(rounds).toBeGreaterThanOrEqual(12);
  expect(rounds).toBeLessThanOrEqual(15);
});

test('meets a due time within a second of a round', async () => {
  poller.whenDue('chores', chores, doChores);
  await start();
  await add('300 ms');
  poller.wakeIn(0);
  const moments: number[] = [];
  for (let passedMs = 100; passedMs <= 400; passedMs += 100) {
    await world.advance('100 ms');
    await roundEnds();
    if (runs.length > 0) moments.push(passedMs);
  }
  expect(moments).toEqual([300, 400]);
});

test('looks for lost work a second after a notification by the same process', async () => {
  poller.whenDue('chores', chores, doChores);
  await start();
  await add('0 s');
  const notifier = new QueueNotifier(world.get(Clock), world.get(QueueStore), poller);
  notifier.notify('compliance');
  await pass(1);
  expect(runs).toEqual(['chores']);
});

test('runs a poll once a second while a due row cannot be claimed', async () => {
  poller.whenDue('chores', chores, note('tried'));
  await add('0 s');
  await start();
  for (let step = 0; step < 9 * 5; step += 1) {
    await world.advance('200 ms');
    await roundEnds();
  }
  expect(runs).toHaveLength(10);
});

test('never runs a poll whose SQL is null', async () => {
  poller.whenDue('not configured', () => null, note('not configured'));
  await start();
  await pass(10);
  expect(runs).toEqual([]);
});

test('runs every poll if the database does not say which is due', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  poller.whenDue('broken', () => '(SELECT due_at FROM missing)', note('broken'));
  poller.whenDue('chores', chores, note('chores'));
  await start();
  expect(runs).toEqual(['broken', 'chores']);
  expect(warn).toHaveBeenCalledTimes(1);
  warn.mockRestore();
});

test('retries a poll that failed, and logs it once', async () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  poller.whenDue('chores', chores, () => {
    runs.push('failed');
    throw new Error('out of order');
  });
  await add('0 s');
  await start();
  await pass(2);
  expect(runs).toHaveLength(3);
  expect(warn).toHaveBeenCalledTimes(1);
  warn.mockRestore();
});

test('a long run delays its own poll, but no other', async () => {
  let end = () => {};
  poller.whenDue('long', chores, () => {
    runs.push('long');
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  poller.whenDue('short', chores, note('short'));
  await add('0 s');
  poller.onApplicationBootstrap();
  for (const expected of [2, 3]) {
    await world.advance('1 s');
    await world.eventually('the round ends', () => runs.length === expected);
  }
  expect(runs).toEqual(['long', 'short', 'short']);
  end();
  await roundEnds();
  await world.advance('1 s');
  await world.eventually('it runs again', () => runs.filter((name) => name === 'long').length === 2);
  end();
});

test('runs a poll at intervals without a row', async () => {
  poller.every(10_000, 'interval', note('interval'));
  await start();
  await pass(8 - 1);
  expect(runs).toEqual([]);
  await pass(4);
  expect(runs).toEqual(['interval']);
  await pass(100);
  expect(runs.length).toBeGreaterThanOrEqual(8);
  expect(runs.length).toBeLessThanOrEqual(12);
});

test('starts no poll once the process stops', async () => {
  poller.whenDue('chores', chores, note('chores'));
  await add('0 s');
  stopping.startShutdown();
  await start();
  await pass(5);
  expect(runs).toEqual([]);
});

test('waits at shutdown for the poll in progress', async () => {
  let end = () => {};
  const work = () =>
    new Promise<void>((resolve) => {
      runs.push('begun');
      end = () => {
        runs.push('ended');
        resolve();
      };
    });
  poller.whenDue('chores', chores, work);
  await add('0 s');
  poller.onApplicationBootstrap();
  await world.advance('1 s');
  await world.eventually('it begins', () => runs.length === 1);
  const stopped = poller.onModuleDestroy().then(() => runs.push('stopped'));
  await new Promise((resolve) => setImmediate(resolve));
  end();
  await stopped;
  await world.advance('10 s');
  expect(runs).toEqual(['begun', 'ended', 'stopped']);
});

test('does not poll in a process without the role worker', async () => {
  poller = newPoller('api');
  poller.whenDue('chores', chores, note('chores'));
  await add('0 s');
  await start();
  poller.wakeIn(0);
  await pass(10);
  expect(runs).toEqual([]);
});

test('runs a poll now when asked to, and again if it was asked for during a run', async () => {
  let end = () => {};
  poller.whenDue('chores', chores, () => {
    runs.push('chores');
    return new Promise<void>((done) => (end = done));
  });
  poller.runNow('chores');
  expect(runs).toEqual([]);
  await start();
  poller.runNow('chores');
  poller.runNow('chores');
  poller.runNow('chores');
  expect(runs).toEqual(['chores']);
  end();
  await world.eventually('it runs again', () => runs.length === 2);
  end();
  await roundEnds();
  expect(runs).toEqual(['chores', 'chores']);
});
