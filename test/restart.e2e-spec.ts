import { once } from 'node:events';
import { createConnection } from 'node:net';
import pg from 'pg';
import { until } from '../harness/until.js';
import { useMirrors } from './support/service.js';
import { deliver, sessionEvent, signed } from './support/webhook-requests.js';

const newMirror = useMirrors();

const isRefused = (url: string) => () =>
  fetch(`${url}/health/live`).then(
    async (answer) => !(await answer.arrayBuffer()),
    (error: { cause?: { code?: string } }) => error.cause?.code === 'ECONNREFUSED',
  );

test('from the signal on health says so, and requests are answered as ever, each on a connection that ends', async () => {
  const mirror = await newMirror({ env: { SHUTDOWN_DELAY_SECONDS: '60' } });
  const service = await mirror.start();
  const before = await deliver(service, signed(sessionEvent('s-1')));
  expect([before.status, before.headers.get('connection')]).toEqual([204, 'keep-alive']);
  service.signal('SIGTERM');
  await service.printed(/"msg":"stopping"/);
  const ready = await fetch(`${service.url}/health/ready`);
  expect([ready.status, await ready.json()]).toEqual([503, { status: 'stopping', checks: {} }]);
  const after = await deliver(service, signed(sessionEvent('s-2')));
  expect([after.status, after.headers.get('connection')]).toEqual([204, 'close']);
  expect(await mirror.sql('SELECT 1 FROM webhook_deliveries')).toHaveLength(2);
});

test('the listener closes before the workers have ended, and a delivery that was begun is still taken', async () => {
  const mirror = await newMirror();
  const service = await mirror.start();
  mirror.hold({ operation: 'checkUser' });
  const person = { email: 'pia@example.org', firstName: 'Pia', lastName: 'Ruiz' };
  await service.call('PUT', '/v1/providers/p-1', { body: person });
  await until('a call is under way', () => mirror.arrivals('checkUser') === 1);
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
  // It is not idle once its first bytes were read; the answer to a later request tells that they were.
  await fetch(`${service.url}/health/live`);

  const ended = service.kill('SIGTERM');
  await until('new connections are refused', isRefused(service.url));
  const rest = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${rest.join('')}\r\n${body}`);
  await until('the delivery is answered', () => answer.includes('\r\n\r\n'));
  expect(answer).toMatch(/^HTTP\/1\.1 204 /);
  expect(answer).toMatch(/\r\nconnection: close\r\n/i);
  mirror.release();
  expect(await ended).toBe(0);
  expect(await mirror.sql('SELECT state FROM people')).toEqual([{ state: 'pending' }]);
  expect(await mirror.sql('SELECT 1 FROM webhook_deliveries')).toHaveLength(1);
});

test('a stop waits for one delivery of the inbox, not for a whole batch, and leaves the others as they were', async () => {
  const mirror = await newMirror({ env: { ROLES: 'api' } });
  const receiver = await mirror.start();
  const sessions = Array.from({ length: 30 }, (_, at) => `s-${at}`);
  await Promise.all(sessions.map((session) => deliver(receiver, signed(sessionEvent(session)))));
  const lock = new pg.Client({ connectionString: mirror.database.url });
  await lock.connect();
  try {
    // Each delivery waits for two seconds, all of them longer than a process may take to stop.
    await lock.query('BEGIN; LOCK TABLE sessions IN SHARE MODE');
    const worker = await mirror.start({ ROLES: 'worker' });
    await until('a delivery waits', async () => {
      const waiting = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'sessions'::regclass";
      return (await mirror.sql(waiting)).length > 0;
    });
    expect(await worker.kill('SIGTERM')).toBe(0);
  } finally {
    await lock.end();
  }
  const [left] = await mirror.sql<{ n: number }>(
    `SELECT count(*)::int AS n FROM webhook_deliveries WHERE state = 'received' AND attempts = 0`,
  );
  expect(left?.n).toBeGreaterThan(0);
  expect(await mirror.sql('SELECT 1 FROM webhook_claims')).toEqual([]);
});
