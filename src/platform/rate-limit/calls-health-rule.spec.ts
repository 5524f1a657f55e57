import { callsHealth } from './calls-health.js';

type RecentCalls = Parameters<typeof callsHealth>[0];

const now = new Date('2026-03-01T03:00:00Z');
const of = (...ended: [outcome: string, status: number | null][]): RecentCalls => ({
  ended: ended.map(([outcome, status]) => ({ outcome, status, reason: null })),
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

test.each<[string, [string, number | null][], RegExp]>([
  ['unreachable calls', [UNREACHABLE, UNREACHABLE, BAD_GATEWAY], /could not be reached.*doctor/],
  ['failing calls', [BAD_GATEWAY, UNREACHABLE, BAD_GATEWAY], /answered with 502.*work is kept/],
  ['calls without an answer', [['unknown-outcome', null], BAD_GATEWAY, BAD_GATEWAY], /gave no readable answer/],
])('the platform is degraded after three %s in a row, with the cause', (_what, ended, reason) => {
  expect(callsHealth(of(...ended))).toMatchObject({ status: 'degraded', reason: expect.stringMatching(reason) });
});

test('the platform is degraded during the pause after a 429, with its end', () => {
  const calls = of(['rate-limited', 429], ['ok', 200]);
  const later = new Date(now.getTime() + 60_000);
  expect(callsHealth({ ...calls, blockedUntil: later })).toMatchObject({
    status: 'degraded',
    reason: expect.stringContaining(later.toISOString()),
    facts: { pausedUntil: later.toISOString() },
  });
  expect(callsHealth({ ...calls, blockedUntil: now })).toEqual({ status: 'ok' });
});
