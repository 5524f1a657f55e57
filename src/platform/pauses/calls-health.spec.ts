import { USER_MANAGEMENT } from './apis.js';
import { callsReasons, stopOf } from './calls-health.js';
import type { Pause } from './pause-row.js';
import { at, NOW, open } from './pauses.spec-support.js';

const [since, later] = [at(-60_000), at(60_000)];

const pauseOf = (key: string, changes: Partial<Pause> = {}): Pause => ({ ...open(key), ...changes });
const paused = (reason: string, status: number | null) =>
  pauseOf('createClient', { pausedUntil: later, failingSince: since, reason, status });

test('the platform is healthy without pauses, after the end of a 429, and after single failures', () => {
  const pauses = [
    pauseOf(USER_MANAGEMENT, { limitedUntil: NOW, failingSince: since, failing: ['a', 'b'] }),
    pauseOf('checkUser', { refusals: 19 }),
  ];
  expect(callsReasons(pauses, NOW)).toEqual([]);
});

test('a pause after a 429 shows when it ends', () => {
  const values = { operations: 'user management', detail: 'until 2026-11-21 05:01:00 UTC' };
  const pauses = [pauseOf(USER_MANAGEMENT, { limitedUntil: later, pausedUntil: later, failingSince: since })];
  expect(callsReasons(pauses, NOW)).toEqual([{ code: 'rate-limited', values }]);
});

test('a pause of an API and one of its operations are reported by their names', () => {
  const pauses = [
    pauseOf('sessions', { pausedUntil: later, reason: 'unauthorized', status: 401 }),
    paused('lost', 502),
  ];
  const names = callsReasons(pauses, NOW).map(({ code, values }) => [code, values?.operations]);
  expect(names).toEqual([
    ['platform-unauthorized', 'sessions'],
    ['platform-fault', 'createClient'],
  ]);
});

test('a pause shows the status, the next probe and its beginning', () => {
  const detail = '502, next probe at 2026-11-21 05:01:00 UTC';
  expect(callsReasons([paused('lost', 502)], NOW)).toEqual([
    { code: 'platform-fault', values: { operations: 'createClient', detail }, since },
  ]);
});

test('once its time has passed, the next call is the probe', () => {
  const { values } = stopOf({ ...paused('lost', 502), pausedUntil: since }, NOW) ?? {};
  expect(values?.detail).toBe('502, the next call is a probe');
});

test.each([
  ['unauthorized', 401, 'platform-unauthorized'],
  ['elsewhere', 403, 'platform-unauthorized'],
  ['elsewhere', 405, 'platform-address'],
  ['elsewhere', 200, 'platform-address'],
  ['lost', 502, 'platform-fault'],
  ['unreachable', null, 'platform-fault'],
])('a pause because of "%s" with %s has the code %s', (reason, status, code) => {
  expect(stopOf(paused(reason, status), NOW)?.code).toBe(code);
});

test('a pause lasts until a probe is answered', () => {
  expect(stopOf({ ...paused('lost', null), pausedUntil: since }, NOW)?.code).toBe('platform-fault');
});

test('twenty refusals in a row of one operation are a cause', () => {
  const reasons = [{ code: 'platform-rejects', values: { operations: 'createClient' } }];
  expect(callsReasons([pauseOf('createClient', { refusals: 20 })], NOW)).toEqual(reasons);
});
