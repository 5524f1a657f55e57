import { callsHealth } from './calls-health.js';

type CallsLately = Parameters<typeof callsHealth>[0];

const now = new Date('2026-03-01T03:00:00Z');
const of = (...ended: [outcome: string, status: number | null][]): CallsLately => ({
  ended: ended.map(([outcome, status]) => ({ outcome, status })),
  blockedUntil: null,
  now,
});
const UNREACHABLE: [string, null] = ['unreachable', null];
const BAD_GATEWAY: [string, number] = ['unknown-outcome', 502];

test('without calls, and after calls that were answered, all is well', () => {
  expect(callsHealth(of())).toEqual({ status: 'ok' });
  expect(callsHealth(of(['ok', 200], ['not-found', 404], ['unauthorized', 403]))).toEqual({ status: 'ok' });
});

test('two calls without an answer are no outage yet, and one answer ends one', () => {
  expect(callsHealth(of(UNREACHABLE, UNREACHABLE)).status).toBe('ok');
  expect(callsHealth(of(UNREACHABLE, UNREACHABLE, ['ok', 200])).status).toBe('ok');
  expect(callsHealth(of(['not-found', 404], UNREACHABLE, UNREACHABLE, UNREACHABLE)).status).toBe('ok');
});

test.each<[string, [string, number | null][], RegExp]>([
  ['a platform that can not be reached', [UNREACHABLE, UNREACHABLE, BAD_GATEWAY], /could not be reached.*doctor/],
  ['one that fails', [BAD_GATEWAY, UNREACHABLE, BAD_GATEWAY], /answered with 502.*work is kept/],
  ['one that hangs', [['unknown-outcome', null], BAD_GATEWAY, BAD_GATEWAY], /gave no readable answer/],
])('three in a row of %s degrade the health and say what is wrong', (_what, ended, reason) => {
  expect(callsHealth(of(...ended))).toMatchObject({ status: 'degraded', reason: expect.stringMatching(reason) });
});

test('a pause after a 429 degrades it until it is over, and says when that is', () => {
  const calls = of(['rate-limited', 429], ['ok', 200]);
  const later = new Date(now.getTime() + 60_000);
  expect(callsHealth({ ...calls, blockedUntil: later })).toMatchObject({
    status: 'degraded',
    reason: expect.stringContaining(later.toISOString()),
    facts: { pausedUntil: later.toISOString() },
  });
  expect(callsHealth({ ...calls, blockedUntil: now })).toEqual({ status: 'ok' });
});
