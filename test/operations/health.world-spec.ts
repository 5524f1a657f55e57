import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const want = (externalId: string, wait?: number) => {
  const body = { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
  return world.call('PUT', `/v1/providers/${externalId}`, { body, wait });
};
const health = async () => (await world.call<HealthReport>('GET', '/health/ready')).body;
const platform = async () => (await health()).checks.platform;

async function metric(name: string): Promise<number> {
  const lines = (await world.call('GET', '/metrics')).text.split('\n');
  return Number(lines.find((line) => line.startsWith(`notebridge_${name} `))?.split(' ')[1]);
}

test('health and metrics show an outage of the platform and its end', async () => {
  const unanswered = 'platform_call_seconds_count{operation="checkUser",outcome="unknown-outcome"}';
  const before = (await metric(unanswered)) || 0;
  world.platform.injectFault({ kind: 'status', status: 502, count: 5 });
  for (let n = 1; n <= 5; n += 1) await want(`p-${n}`);
  await world.settle();
  expect(await platform()).toMatchObject({
    status: 'degraded',
    reason: expect.stringMatching(/no readable answer: user management \(502, next probe at .*Work is kept/),
  });
  expect((await metric(unanswered)) - before).toBe(5);
  world.platform.release();
  await world.advance('9 s'); // then a probe goes out
  await world.settle();
  await want('p-6', 60);
  expect((await platform())?.status).toBe('ok');
});

test('health shows until when a 429 pauses the calls', async () => {
  world.platform.injectFault({ kind: 'rate-limit', retryAfter: 'seconds', retryAfterSeconds: 1_800 });
  await want('p-7');
  await world.settle();
  expect((await platform())?.reason).toMatch(/429.*user management \(until \d{4}-/);
  expect(await metric('platform_window_limit')).toBe(6_000);
  await world.advance('30 min');
  expect((await platform())?.status).toBe('ok');
});

test('health tells that a role which owns the tables can change the audit log', async () => {
  expect((await health()).checks.database).toMatchObject({ status: 'ok', facts: { auditLogProtected: false } });
});

/** The health, asked while a transaction locks the pauses of calls. */
async function lockedHealth(meanwhile: () => Promise<unknown>): Promise<HealthReport> {
  const lock = await world.database.pool.connect();
  await lock.query('BEGIN; LOCK TABLE platform_pauses IN ACCESS EXCLUSIVE MODE');
  const answering = health();
  try {
    const waiting = `SELECT FROM pg_locks WHERE NOT granted AND relation = 'platform_pauses'::regclass`;
    await world.eventually('a check waits', async () => (await world.sql(waiting)).length > 0);
    await meanwhile();
  } finally {
    await lock.query('ROLLBACK');
    lock.release();
  }
  return answering;
}

test('a check is late by the clock of the service only', async () => {
  const machineTime = () => new Promise((resolve) => setTimeout(resolve, 2_500));
  expect((await lockedHealth(machineTime)).checks.platform?.status).toBe('ok');
  expect((await lockedHealth(() => world.advance('3 s'))).checks.platform?.status).toBe('down');
});
