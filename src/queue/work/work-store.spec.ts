import { Logger } from '@nestjs/common';
import { MemoryWorkStore } from '../../../harness/memory-queue/manual-work.js';
import { WorldClock } from '../../../harness/world/time.js';
import { WorkQueues } from './work-queues.js';

const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
const silent = new Error('no answer');

let warned: jest.SpyInstance;
let logged: jest.SpyInstance;
beforeEach(() => {
  warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  logged = jest.spyOn(Logger.prototype, 'log').mockImplementation(() => undefined);
});
afterEach(() => jest.restoreAllMocks());

function newStore() {
  const clock = new WorldClock();
  const store = new MemoryWorkStore(clock);
  return { clock, store, queues: new WorkQueues(store), status: () => store.health.status };
}

test('an error that names its cause is a fault at once, with its start', () => {
  const { clock, store } = newStore();
  store.failed(refused);
  const since = clock.now();
  clock.advance(1_000);
  store.failed(refused);
  const values = { fault: 'PostgreSQL cannot be reached at DATABASE_URL.', setting: 'DATABASE_URL' };
  const reason = { code: 'queue-unavailable', values, follows: true, since };
  expect(store.health).toEqual({ status: 'degraded', reasons: [reason] });
});

test('late answers are a fault only if none came for some seconds', () => {
  const { clock, store, status } = newStore();
  for (let seconds = 0; seconds < 3; seconds += 1) {
    store.failed(silent);
    clock.advance(1_000);
  }
  expect(status()).toBe('ok');
  store.answered();
  store.failed(silent);
  clock.advance(3_000);
  store.failed(silent);
  expect(status()).toBe('ok');
  clock.advance(1_000);
  store.failed(silent);
  expect(status()).toBe('degraded');
});

test('a deadlock is no fault', () => {
  const { store, status } = newStore();
  store.failed(Object.assign(new Error(), { code: '40P01' }));
  expect([status(), warned.mock.calls]).toEqual(['ok', []]);
});

test('an answer ends a fault, unless another connection reported it just now', () => {
  const { clock, store, status } = newStore();
  store.failed(refused);
  clock.advance(1_000);
  store.answered();
  expect(status()).toBe('degraded');
  clock.advance(1_000);
  store.answered();
  expect(status()).toBe('ok');
});

test('one line says that the store is unavailable, and one that it is available again', () => {
  const { clock, store } = newStore();
  for (let seconds = 0; seconds < 30; seconds += 1) {
    store.failed(refused);
    clock.advance(1_000);
  }
  clock.advance(1_000);
  store.answered();
  store.answered();
  expect(warned.mock.calls).toEqual([[expect.stringContaining('PostgreSQL cannot be reached at DATABASE_URL.')]]);
  expect(logged.mock.calls).toEqual([['the queues are available again']]);
});

test('health adds a job that no worker takes, so it finds what the process has not met, once', async () => {
  const { clock, store, queues } = newStore();
  expect(await queues.health()).toEqual({ status: 'ok' });
  store.jobs.isAway = true;
  expect((await queues.health()).status).toBe('degraded');
  store.jobs.isAway = false;
  clock.advance(2_000);
  expect(await queues.health()).toEqual({ status: 'ok' });
  expect(store.jobs.stateOf('probe').count('waiting')).toBe(1);
});
