import { reportOf } from './health-checks.js';

const answer = (vital: boolean, status: 'ok' | 'degraded' | 'down', name = 'part') => ({
  name,
  vital,
  health: { status, ...(status !== 'ok' && { reason: 'why' }) },
});

test.each([
  [[], 'ok'],
  [[answer(true, 'ok'), answer(false, 'ok', 'other')], 'ok'],
  [[answer(true, 'ok'), answer(false, 'degraded', 'other')], 'degraded'],
  [[answer(true, 'ok'), answer(false, 'down', 'other')], 'degraded'],
  [[answer(true, 'degraded'), answer(false, 'ok', 'other')], 'degraded'],
  [[answer(true, 'down'), answer(false, 'ok', 'other')], 'down'],
] as const)('only a vital part that is down takes the service down (%#)', (answers, status) => {
  expect(reportOf(answers).status).toBe(status);
});

test('every part is shown by its name', () => {
  expect(reportOf([answer(true, 'ok', 'database'), answer(false, 'down', 'queue')]).checks).toEqual({
    database: { status: 'ok' },
    queue: { status: 'down', reason: 'why' },
  });
});
