import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { imageHealthCheck, startOfCompose, systemdUnit } from '../../harness/deployment-files.js';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import { ADMIN_KEY } from '../support/app.js';
import { deployedSettings } from '../support/deployed.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';
import { settledPerson } from '../support/settled-person.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';

const newWorld = useTestWorlds();

const put = (service: Service, id: string) =>
  service.call('PUT', `/v1/providers/${id}`, {
    body: { email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' },
  });

describe('an API process and its workers', () => {
  let world: TestWorld;
  let api: Service;
  let worker: Service;

  beforeAll(async () => {
    world = await newWorld();
    const start = startOfCompose('api');
    const settings = deployedSettings(start, world.settings);
    api = await world.start({ ...settings, SHUTDOWN_DELAY_SECONDS: '60' }, start.command);
  });

  const becomes = (status: string, reason = '') =>
    until(`the API is ${status} (${reason})`, async () => {
      const { status: code, body } = await api.call<{
        status: string;
        checks: Record<string, { reason?: string }>;
      }>('GET', '/health/ready');
      return code === 200 && body.status === status && (body.checks.worker?.reason ?? '').includes(reason);
    });
  const metricsOf = ({ url }: Service) =>
    fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } }).then((answer) => answer.text());
  const heartbeatAge = async () => {
    const [, seconds] = /^notebridge_heartbeat_age_seconds\{role="worker"\} (\S+)$/m.exec(await metricsOf(api)) ?? [];
    return seconds === undefined ? undefined : Number(seconds);
  };
  const startWorker = () => {
    const { start } = systemdUnit('notebridge-worker@');
    return world.start(deployedSettings(start, world.settings), start.command);
  };
  /** The exit code of the image's health check in a container with this process. */
  const healthCheck = ({ url }: Service) => {
    const [, ...args] = imageHealthCheck();
    const env = { ...process.env, PORT: new URL(url).port };
    return new Promise((resolve) => spawn(process.execPath, args, { env }).once('close', resolve));
  };

  test('the API is degraded until a worker is alive', async () => {
    await becomes('degraded', 'No process with the role worker');
    expect(await heartbeatAge()).toBeUndefined();
    worker = await startWorker();
    await becomes('ok');
    await until('its heartbeat is measured', async () => Number(await heartbeatAge()) >= 0);
  });

  test('a worker serves its health and metrics, and nothing else', async () => {
    expect((await worker.call('GET', '/health/live')).status).toBe(200);
    await until('it is ready', async () => (await worker.call('GET', '/health/ready')).status === 200);
    expect(await healthCheck(worker)).toBe(0);
    expect(await metricsOf(worker)).toContain('notebridge_');
    expect((await fetch(`${worker.url}/metrics`)).status).toBe(401);
    for (const path of ['/v1/people', '/docs', '/openapi.json']) {
      expect((await worker.call('GET', path)).status).toBe(404);
    }
    expect((await worker.call('POST', '/webhooks/platform', { body: {} })).status).toBe(404);
  });

  test('a process whose port is taken ends with one message that says what to do', async () => {
    const { port } = new URL(api.url);
    const refused = await world.start({ ROLES: 'worker', PORT: port }).catch((error: Error) => error.message);
    expect(refused).toMatch(
      new RegExp(
        `^The server cannot listen \\(.*EADDRINUSE.* 127\\.0\\.0\\.1:${port}\\)\\. Set HOST .* PORT to a free port`,
        'm',
      ),
    );
    expect(refused).not.toMatch(/^\s+at /m);
  });

  test('the API is degraded again after the worker is killed', async () => {
    await worker.kill();
    await world.sql(`UPDATE workers SET alive_until = alive_until - interval '38 seconds'`);
    await becomes('degraded', 'No process with the role worker');
    await until('its heartbeat is old', async () => Number(await heartbeatAge()) >= 30);
  });

  test('a stop waits for one delivery of the inbox, not for a whole batch', async () => {
    const sessions = Array.from({ length: 30 }, (_, at) => `s-${at}`);
    await Promise.all(sessions.map((session) => deliver(api, signed(sessionEvent(session)))));
    const lock = new pg.Client({ connectionString: world.database.url });
    await lock.connect();
    try {
      // Each delivery waits for two seconds, all of them longer than a process may take to stop.
      await lock.query('BEGIN; LOCK TABLE sessions IN SHARE MODE');
      const stopped = await startWorker();
      await until('a delivery waits', async () => {
        const waiting = "SELECT FROM pg_locks WHERE NOT granted AND relation = 'sessions'::regclass";
        return (await world.sql(waiting)).length > 0;
      });
      expect(await stopped.kill('SIGTERM')).toBe(0);
    } finally {
      await lock.end();
    }
    const left = await world.sql<{ starts: number; due: boolean }>(
      "SELECT starts, due_at <= now() AS due FROM webhook_deliveries WHERE state = 'received' AND attempts = 0",
    );
    expect(left.length).toBeGreaterThan(0);
    expect(left).toEqual(left.map(() => ({ starts: 0, due: true })));
  });

  test('during SHUTDOWN_DELAY_SECONDS health reports it, and each answer ends its connection', async () => {
    const before = await deliver(api, signed(sessionEvent('before')));
    expect([before.status, before.headers.get('connection')]).toEqual([204, 'keep-alive']);
    api.signal('SIGTERM');
    await api.printed(/"msg":"stopping"/);
    const ready = await fetch(`${api.url}/health/ready`);
    expect([ready.status, await ready.json()]).toEqual([503, { status: 'stopping', causes: [], checks: {} }]);
    expect(await healthCheck(api)).toBe(1);
    const after = await deliver(api, signed(sessionEvent('after')));
    expect([after.status, after.headers.get('connection')]).toEqual([204, 'close']);
    await api.kill();
    expect(await healthCheck(api)).toBe(1);
    // The log of a start is about the service, not about its framework.
    expect(api.output()).not.toMatch(/"context":"(InstanceLoader|RouterExplorer|RoutesResolver|Nest\w+)"/);
  });
});

/** Longer than the pollers and the queue leave due work alone. */
const LONG_MS = 5_000;

test('a stop completes what has begun, a call and a delivery, and begins nothing else', async () => {
  const preload = path.resolve('test/support/print-packages.cjs');
  const env = { PLATFORM_TIMEOUT_SECONDS: '60', NODE_OPTIONS: `--require ${preload}` };
  const world = await newWorld({ env });
  const service = await world.start();
  // This person waits for an hour and becomes due while the service stops.
  world.injectFault({ operation: 'checkUser', kind: 'rate-limit', retryAfterSeconds: 3_600 });
  await put(service, 'later');
  const paused = 'SELECT FROM platform_pauses WHERE limited_until > now()';
  await until('the calls are paused', async () => (await world.sql(paused)).length > 0);
  await world.sql(`UPDATE people SET due_at = now() + interval '1 hour'`);
  await world.sql('UPDATE platform_pauses SET limited_until = NULL');
  world.hold({ operation: 'createProvider' });
  await put(service, 'now');
  await until('its create is in flight', () => world.arrivals('createProvider') === 1);

  const body = sessionEvent('s-1');
  const { headers } = signed(body);
  const socket = createConnection(Number(new URL(service.url).port), '127.0.0.1');
  let answer = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    answer += chunk;
  });
  await once(socket, 'connect');
  const begin = `POST /webhooks/platform HTTP/1.1\r\nhost: notebridge\r\ncontent-length: ${body.length}\r\n`;
  await new Promise((sent) => socket.write(begin, sent));
  // A connection is idle until its first bytes are read; this later answer proves that they were.
  await fetch(`${service.url}/health/live`);

  const ended = service.kill('SIGTERM');
  await until('new connections are refused', () =>
    fetch(`${service.url}/health/live`).then(
      async (live) => !(await live.arrayBuffer()),
      (error: { cause?: { code?: string } }) => error.cause?.code === 'ECONNREFUSED',
    ),
  );
  const rest = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${rest.join('')}\r\n${body}`);
  await until('the delivery is answered', () => answer.includes('\r\n\r\n'));
  expect(answer).toMatch(/^HTTP\/1\.1 204 [\s\S]*\r\nconnection: close\r\n/i);

  await world.sql(`UPDATE people SET due_at = now() WHERE external_id = 'later'`);
  const before = world.arrivals();
  await delay(LONG_MS);
  world.release();
  expect(await ended).toBe(0);
  expect(world.arrivals()).toBe(before);
  expect(await world.sql('SELECT external_id, state FROM people ORDER BY 1')).toEqual([
    { external_id: 'later', state: 'pending' },
    { external_id: 'now', state: 'synced' },
  ]);
  expect(await world.sql('SELECT FROM webhook_deliveries')).toHaveLength(1);
  // Without a collector the SDK of OpenTelemetry costs nothing.
  expect(service.output()).toMatch(
    /Packages: (?!.*@opentelemetry\/(sdk|exporter|instrumentation)).*@opentelemetry\/api/,
  );
});

test('a worker that continues after another took its person over only logs its call', async () => {
  const world = await newWorld({ env: { PLATFORM_TIMEOUT_SECONDS: '5' } });
  const stale = await world.start();
  world.hold({ operation: 'checkUser' });
  await put(stale, 'p-1');
  await until('its check is in flight', () => world.arrivals('checkUser') === 1);
  stale.signal('SIGSTOP');
  const successor = await world.start();
  expect((await settledPerson(successor, 'providers/p-1')).sync.state).toBe('synced');

  const person = () => world.sql('SELECT * FROM people');
  const logged = async () => (await world.sql('SELECT FROM platform_calls')).length;
  const before = await person();
  expect(await logged()).toBe(2);
  world.release();
  stale.signal('SIGCONT');
  await until('its call is logged', async () => (await logged()) === 3);
  // A stop waits for all work that the answer starts.
  expect(await stale.kill('SIGTERM')).toBe(0);
  expect(await person()).toEqual(before);
  const made = world.simulator.state.arrivals.list().map(({ operation }) => operation);
  expect(made).toEqual(['checkUser', 'checkUser', 'createProvider']);
  expect(await successor.kill('SIGTERM')).toBe(0);
});
