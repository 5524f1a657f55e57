import { callsHealth } from './calls-health.js';

type RecentCalls = Parameters<typeof callsHealth>[0];

const now = new Date('2026-03-01T03:00:00Z');
const of = (...ended: [outcome: string, status: number | null][]): RecentCalls => ({
  ended: ended.map(([outcome, status]) => ({ operation: 'checkUser', outcome, status, reason: null })),
  blockedUntil: null,
  now,
});
const UNREACHABLE: [string, null] = ['unreachable', null];
const BAD_GATEWAY: [string, number] = ['unknown-outcome', 502];

test('the platform is healthy without calls, and after answered calls', () => {
  expect(callsHealth(of())).toEqual({ status: 'ok' });
  expect(callsHealth(of(['ok', 200], ['not-found', 404], ['unauthorized', 403]))).toEqual({ status: 'ok' });
});

test('the platform is healthy after two calls without an answer, and once one is answered', () => {
  expect(callsHealth(of(UNREACHABLE, UNREACHABLE)).status).toBe('ok');
  expect(callsHealth(of(UNREACHABLE, UNREACHABLE, ['ok', 200])).status).toBe('ok');
  expect(callsHealth(of(['not-found', 404], UNREACHABLE, UNREACHABLE, UNREACHABLE)).status).toBe('ok');
});

test.each<[string, [string, number | null][], string]>([
  ['unreachable calls', [UNREACHABLE, UNREACHABLE, BAD_GATEWAY], ''],
  ['failing calls', [BAD_GATEWAY, UNREACHABLE, BAD_GATEWAY], '502'],
  ['calls without an answer', [['unknown-outcome', null], BAD_GATEWAY, BAD_GATEWAY], ''],
])('the platform is degraded after three %s in a row, with the latest one', (_what, ended, detail) => {
  expect(callsHealth(of(...ended))).toEqual({
    status: 'degraded',
    reasons: [{ code: 'platform-fault', values: { operations: 'checkUser', detail } }],
  });
});

test('the platform is degraded during the pause after a 429, with its end', () => {
  const calls = of(['rate-limited', 429], ['ok', 200]);
  const later = new Date(now.getTime() + 60_000);
  const values = { operations: 'user management', detail: 'until 2026-03-01 03:01:00 UTC' };
  const reasons = [{ code: 'rate-limited', values }];
  expect(callsHealth({ ...calls, blockedUntil: later })).toEqual({ status: 'degraded', reasons });
  expect(callsHealth({ ...calls, blockedUntil: now })).toEqual({ status: 'ok' });
});
