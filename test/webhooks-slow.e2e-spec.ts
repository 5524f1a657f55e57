import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { until } from '../harness/until.js';
import { Rejections } from '../src/webhooks/receive/rejections.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { deliver, sessionEvent, signed } from './support/webhook-requests.js';
import { startWebhooks, type WebhooksApp } from './support/webhooks-app.js';

const KIB = 1024;

/** Well-formed headers that no secret has made. */
const FORGED = { 'x-service-signature': 'a'.repeat(64), 'x-service-timestamp': '1800000000000' };

/** No body is late, however slow the machine is. */
const PATIENT = { BODY_TIMEOUT_SECONDS: '3600' };

describe('senders who take up room at the receiver', () => {
  let database: TestDatabase;
  const started: WebhooksApp[] = [];
  const sockets: Socket[] = [];

  beforeAll(async () => {
    database = await freshDatabase();
  });

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const service of started.splice(0)) await service.close();
  });

  afterAll(() => database.drop());

  async function start(settings: Record<string, string>): Promise<WebhooksApp> {
    const service = await startWebhooks(database.url, { ROLES: 'api', ...settings });
    started.push(service);
    return service;
  }

  function connect({ url }: WebhooksApp): Socket {
    const socket = createConnection(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  }

  /** A delivery of which only a part is sent. */
  function half(service: WebhooksApp, headers: Record<string, string>, length: number, sent: number): Socket {
    const socket = connect(service);
    const lines = Object.entries({ host: 'x', 'content-length': String(length), ...headers });
    socket.write(
      `POST /webhooks/platform HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n`,
    );
    socket.write(Buffer.alloc(sent, 'x'));
    return socket;
  }

  /** What comes first, or nothing when the connection is closed without an answer. */
  const answerOf = (socket: Socket): Promise<string> =>
    new Promise((resolve) => {
      socket.once('data', (answer: Buffer) => resolve(String(answer))).once('close', () => resolve(''));
    });

  test.each([
    ['missing-signature', { ...FORGED, 'x-service-signature': '' }],
    ['missing-timestamp', { 'x-service-signature': FORGED['x-service-signature'] }],
    ['malformed-signature', { ...FORGED, 'x-service-signature': 'A'.repeat(64) }],
    ['malformed-timestamp', { ...FORGED, 'x-service-timestamp': '1:2' }],
    ['content-encoding', { ...FORGED, 'content-encoding': 'gzip' }],
  ])('%s is refused and counted before the body is there', async (cause, headers) => {
    const service = await start({});
    expect(await answerOf(half(service, headers as Record<string, string>, 1_000, 1))).toMatch(/^HTTP\/1.1 401 /);
    const counted = await until('it is counted', async () => {
      await service.app.get(Rejections).flush();
      const sum = 'SELECT sum(count)::int AS n FROM webhook_rejections WHERE cause = $1';
      return (await database.sql.query(sum, [cause])).rows[0].n;
    });
    expect(counted).toBe(1);
  });

  test('a body that does not come in time is answered 408, and its connection closed', async () => {
    const service = await start({ BODY_TIMEOUT_SECONDS: '1' });
    const socket = half(service, FORGED, 1_000, 1);
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
  });

  test('the rest of a body whose sender was answered already is not waited for', async () => {
    const service = await start({ BODY_TIMEOUT_SECONDS: '1' });
    const socket = half(service, {}, 1_000, 1);
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
  });

  test('bodies that stall give way to those that come', async () => {
    const service = await start({ WEBHOOK_BODY_LIMIT: '256 KiB', ARRIVING_BODIES_LIMIT: '1 MiB', ...PATIENT });
    const answers: string[] = [];
    for (let sender = 0; sender < 10; sender++) {
      half(service, FORGED, 256 * KIB, 200 * KIB).on('data', (answer: Buffer) => answers.push(String(answer)));
    }
    // Five of the ten have room.
    await until('the others were refused', () => answers.length >= 5);
    expect(answers.every((answer) => answer.startsWith('HTTP/1.1 503 '))).toBe(true);
    const large = { ...JSON.parse(sessionEvent('large')), padding: 'x'.repeat(200 * KIB) };
    expect((await deliver(service, signed(JSON.stringify(large)))).status).toBe(204);
  });

  test('of too many connections the longest idle gives way, and none that carries a request', async () => {
    const service = await start({ MAX_CONNECTIONS: '3', ...PATIENT });
    const idle = [connect(service), connect(service)];
    const closed = idle.map((socket) => once(socket, 'close'));
    await Promise.all(idle.map((socket) => once(socket, 'connect')));
    expect(await answerOf(half(service, {}, 2, 2))).toMatch(/^HTTP\/1.1 401 /);
    await closed[0];

    const busy: Socket[] = [];
    while (busy.length < 3) {
      const begun = once(service.app.getHttpServer(), 'request');
      busy.push(half(service, FORGED, 1_000, 1));
      await begun;
    }
    await closed[1];
    await until('a fourth finds no place', async () => (await answerOf(half(service, {}, 2, 2))) === '');
    expect(busy.map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
    busy[0]?.destroy();
    await until('a connection is taken again', () => answerOf(half(service, {}, 2, 2)));
  });
});
