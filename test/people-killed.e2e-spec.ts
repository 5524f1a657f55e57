import { until } from '../harness/until.js';
import { useMirrors } from './support/service.js';

const newMirror = useMirrors();

/** Seconds that a call may take here: whoever waited for a lease to run out with it would be seen by that. */
const TIMEOUT_SECONDS = 60;

test('whom a killed process had in hand goes on when it is no longer taken for alive, whatever a call may take', async () => {
  const mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: String(TIMEOUT_SECONDS) } });
  const service = await mirror.start();
  mirror.hold({ operation: 'checkUser' });
  const body = { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Ruiz' };
  await service.call('PUT', '/v1/providers/p-1', { body });
  await until('its check is under way', () => mirror.arrivals('checkUser') === 1);
  await service.kill('SIGKILL');

  await mirror.start();
  const states = () => mirror.sql<{ state: string }>(`SELECT state FROM people WHERE external_id = 'p-1'`);
  await until('it is mirrored', async () => (await states())[0]?.state === 'synced');
  const [calls] = await mirror.sql<{ seconds: number; operations: string[] }>(
    `SELECT array_agg(operation ORDER BY id) AS operations,
       extract(epoch FROM (array_agg(granted_at ORDER BY id))[2] - (array_agg(granted_at ORDER BY id))[1])::float8 AS seconds
     FROM platform_calls`,
  );
  expect(calls?.operations).toEqual(['checkUser', 'checkUser', 'createProvider']);
  expect(calls?.seconds).toBeLessThan(TIMEOUT_SECONDS);
});
