import { until } from '../harness/until.js';
import { useMirrors } from './support/service.js';

const newMirror = useMirrors();

/** Seconds that a call may take here: far more than a lease lasts whose call can be made again. */
const TIMEOUT_SECONDS = 60;

test('whom a killed process had in hand goes on when it is no longer taken for alive, whatever a call may take', async () => {
  const mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: String(TIMEOUT_SECONDS) } });
  const service = await mirror.start();
  mirror.hold({ operation: 'checkUser' });
  const body = { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Ruiz' };
  await service.call('PUT', '/v1/providers/p-1', { body });
  await until('its check is under way', () => mirror.arrivals('checkUser') === 1);
  await service.kill('SIGKILL');
  // Judged by the moments of the lease itself: when it is taken over depends on the machine.
  const [lease] = await mirror.sql<{ outlasts: boolean; alive_until: Date }>(
    `SELECT lease_safe_at >= granted_at + $1 * interval '1 second' AS outlasts, alive_until
     FROM people p JOIN platform_calls ON person_id = p.id JOIN workers w ON w.id = lease_owner`,
    [TIMEOUT_SECONDS],
  );
  expect(lease?.outlasts).toBe(false);

  await mirror.start();
  const states = () => mirror.sql<{ state: string }>(`SELECT state FROM people WHERE external_id = 'p-1'`);
  await until('it is mirrored', async () => (await states())[0]?.state === 'synced');
  const calls = await mirror.sql<{ operation: string; late: boolean }>(
    // A grant that a busy machine could not use in its second is no call.
    `SELECT operation, granted_at >= $1 AS late FROM platform_calls
     WHERE outcome IS DISTINCT FROM 'not-sent' ORDER BY id`,
    [lease?.alive_until],
  );
  expect(calls.map(({ operation }) => operation)).toEqual(['checkUser', 'checkUser', 'createProvider']);
  expect(calls.map(({ late }) => late)).toEqual([false, true, true]);
});
