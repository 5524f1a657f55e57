import { isDeepStrictEqual } from 'node:util';
import pg from 'pg';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { HealthReport } from '../src/operations/health-checks.js';
import { ADMIN_KEY } from './support/app.js';
import { backendPid } from './support/databases.js';
import { type Mirror, useMirrors } from './support/service.js';

describe('who is on call', () => {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let api: Service;
  let worker: Service;
  beforeAll(async () => {
    mirror = await newMirror({ env: { PLATFORM_TIMEOUT_SECONDS: '60' } });
    [api, worker] = await Promise.all([mirror.start({ ROLES: 'api' }), mirror.start({ ROLES: 'worker' })]);
  });

  const health = async () => (await api.call<HealthReport>('GET', '/health/ready')).body;
  /** @param reason part of what it says: a check that a stalled machine kept from its answer counts as down, too */
  const becomes = (status: string, reason = '') =>
    until(`the platform's health is ${status} (${reason})`, async () => {
      const { platform } = (await health()).checks;
      return platform?.status === status && (platform.reason ?? '').includes(reason) ? platform : undefined;
    });
  const want = (externalId: string, wait = 0) => {
    const body = { email: `${externalId}@example.org`, firstName: 'Pia', lastName: 'Ruiz' };
    return api.call('PUT', `/v1/providers/${externalId}`, { body, wait });
  };
  const metric = async (service: Service, name: string) => {
    const answer = await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
    const lines = (await answer.text()).split('\n');
    return Number(lines.find((line) => line.startsWith(`notebridge_${name} `))?.split(' ')[1]);
  };
  /** What the log of the API told of the platform, line by line. */
  const told = () =>
    api
      .output()
      .split('\n')
      .filter((line) => line.includes('"check":"platform"'))
      .map((line) => /"status":"(\w+)"/.exec(line)?.[1] ?? 'well again');

  test('sees an outage of the platform in health, metrics and log, and its end', async () => {
    mirror.trouble({ kind: 'status', status: 502, count: null });
    for (const externalId of ['p-1', 'p-2', 'p-3']) await want(externalId);
    expect(await becomes('degraded')).toMatchObject({
      reason: expect.stringMatching(/answered with 502.*work is kept/),
      facts: { lastOutcome: 'unknown-outcome', lastStatus: 502 },
    });
    const unanswered = 'platform_call_seconds_count{operation="checkUser",outcome="unknown-outcome"}';
    await until('the metrics count them', async () => (await metric(worker, unanswered)) >= 3);
    await until('the log says so', () => told().includes('degraded'));

    mirror.release();
    await want('p-4');
    await becomes('ok');
    await until('the log says so', () => told().at(-1) === 'well again');
    // Each change is told once, however often somebody asked.
    expect(told().filter((status, at, all) => status === all[at - 1])).toEqual([]);
  });

  test('sees that a session holds the budget of calls, and which; work goes on when it ends', async () => {
    await want('held-0', 30);
    const holder = new pg.Client({ connectionString: mirror.database.url });
    await holder.connect();
    await holder.query('BEGIN; SELECT FROM call_budgets FOR UPDATE');
    const pid = await backendPid(holder);
    await want('held-1');
    expect(await becomes('down', `pid ${pid}, idle in transaction`)).toMatchObject({ facts: { heldByPid: pid } });
    // Not vital: what is asked for is kept, and a restart would not help.
    await until('the service is degraded', async () => (await health()).status === 'degraded');
    expect((await fetch(`${worker.url}/health/live`)).status).toBe(200);
    await holder.end();
    await becomes('ok');
    expect((await want('held-1', 60)).status).toBe(200);
  });

  test('sees how long a 429 stops the calls, in every process', async () => {
    mirror.trouble({ kind: 'rate-limit', retryAfter: 'seconds', retryAfterSeconds: 1_800 });
    await want('p-5');
    expect((await becomes('degraded', '429')).reason).toMatch(/429: no call to user management before \d{4}-/);
    const pause = async () => {
      const seconds = 'extract(epoch FROM blocked_until - clock_timestamp())::float8 AS seconds';
      const [row] = await mirror.sql<{ seconds: number }>(`SELECT ${seconds} FROM call_budgets`);
      return row?.seconds ?? 0;
    };
    for (const service of [api, worker]) {
      const before = await pause();
      const left = await metric(service, 'platform_pause_seconds');
      // Both moments that it lies between are counted in milliseconds.
      expect(left).toBeLessThanOrEqual(before + 0.001);
      expect(left).toBeGreaterThanOrEqual((await pause()) - 0.001);
    }
    expect(await metric(api, 'platform_window_limit')).toBe(6_000);
    // However long ago that was on a slow machine.
    await mirror.sql(`UPDATE platform_calls SET expires_at = now() + interval '1 hour'`);
    expect(await metric(api, 'platform_window_calls')).toBeGreaterThan(0);
    await mirror.sql('UPDATE call_budgets SET blocked_until = clock_timestamp()');
    await becomes('ok');
  });

  test('reads the cause once when its database is gone, and no traces', async () => {
    await mirror.database.drop();
    const away = { status: 'down', reason: 'It stands in PostgreSQL, which is away.' };
    await until('its health says why', async () => {
      const { status, checks } = await health();
      const isNamed = /check DATABASE_URL/.test(checks.database?.reason ?? '');
      return status === 'down' && isNamed && isDeepStrictEqual(checks.people, away);
    });
    expect(api.output()).not.toContain('a health check failed');
  });

  test('finds nothing in the log of a start but what concerns this service', () => {
    const contexts = api.output().match(/"context":"(InstanceLoader|RouterExplorer|RoutesResolver|Nest\w+)"/g);
    expect(contexts).toBeNull();
  });
});
