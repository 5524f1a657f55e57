import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../harness/until.js';
import { NEW_IMPORT } from './support/bulk.js';
import { useMirrors } from './support/service.js';

/** Longer than a shutdown once took at most, and than a silence of the queue after which the poller takes turns. */
const LONG_MS = 17_000;

const newMirror = useMirrors();

test('a shutdown waits for a call under way as long as that may take, and begins no other', async () => {
  const mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
  const service = await mirror.start();
  const put = (externalId: string) =>
    service.call('PUT', `/v1/providers/${externalId}`, {
      body: { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' },
    });
  // Whoever is put off until an hour from now is made due when the shutdown has begun.
  mirror.trouble({ operation: 'checkUser', kind: 'rate-limit', retryAfterSeconds: 3_600 });
  await put('p-later');
  await until('the later one is put off', async () => {
    const [budget] = await mirror.sql('SELECT 1 FROM call_budgets WHERE blocked_until > now()');
    return budget !== undefined;
  });
  await mirror.sql(NEW_IMPORT);
  await mirror.sql(`UPDATE people SET due_at = now() + interval '1 hour', paused_by_import = (SELECT id FROM imports)`);
  // Only now: whoever is due may be called at once.
  await mirror.sql('UPDATE call_budgets SET blocked_until = NULL');
  mirror.hold({ operation: 'createProvider' });
  await put('p-now');
  await until('its create is under way', () => mirror.arrivals('createProvider') === 1);

  const ended = service.kill('SIGTERM');
  await service.printed(/"msg":"stopping"/);
  await mirror.sql(`UPDATE people SET due_at = now(), paused_by_import = NULL WHERE external_id = 'p-later'`);
  const before = mirror.arrivals();
  await delay(LONG_MS);
  expect(mirror.arrivals()).toBe(before);
  mirror.release();
  expect(await ended).toBe(0);
  expect(mirror.arrivals()).toBe(before);
  const states = await mirror.sql('SELECT external_id, state FROM people ORDER BY external_id');
  expect(states).toEqual([
    { external_id: 'p-later', state: 'pending' },
    { external_id: 'p-now', state: 'synced' },
  ]);
});
