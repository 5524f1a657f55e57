import { createConnection } from 'node:net';
import { gzipSync } from 'node:zlib';
import type pg from 'pg';
import { until } from '../harness/until.js';
import { Clock } from '../src/config/clock.js';
import { DeliveriesService } from '../src/webhooks/admin/deliveries.service.js';
import { Rejections } from '../src/webhooks/receive/rejections.js';
import { ADMIN_KEY, WEBHOOK_SECRET } from './support/app.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { answerTo, deliver, sessionEvent, signed, wholeAnswer } from './support/webhook-requests.js';
import { startWebhooks, type WebhooksApp } from './support/webhooks-app.js';

describe('the receiver', () => {
  let database: TestDatabase;
  let service: WebhooksApp;
  let sql: pg.Pool;

  beforeAll(async () => {
    database = await freshDatabase();
    service = await startWebhooks(database.url, {
      WEBHOOK_BODY_LIMIT: '64 KiB',
      PLATFORM_WEBHOOK_SECRET: `${WEBHOOK_SECRET}, the-next-secret`,
    });
    sql = database.sql;
  });

  afterAll(async () => {
    await service?.close();
    await database?.drop();
  });

  const send = async (init: RequestInit) => {
    const response = await deliver(service, init);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const rows = async () =>
    (await sql.query('SELECT id, body, secret_index, repeats, sent_at FROM webhook_deliveries ORDER BY id')).rows;
  const lastRow = async () => (await rows()).at(-1);
  const countOf = async (cause: string): Promise<number> => {
    await service.app.get(Rejections).flush();
    const text = 'SELECT COALESCE(sum(count), 0)::int AS n FROM webhook_rejections WHERE cause = $1';
    return (await sql.query(text, [cause])).rows[0].n;
  };

  test('a genuine delivery is in the inbox, sealed, when it is answered 204', async () => {
    const answer = await send(signed(sessionEvent('very-visible-id')));
    expect([answer.status, answer.text]).toEqual([204, '']);
    const row = await lastRow();
    expect(row).toMatchObject({ secret_index: 0 });
    expect(row.body.toString('latin1')).not.toContain('very-visible-id');
  });

  test('which secret of the rotation had signed is recorded', async () => {
    expect((await send(signed(sessionEvent('s'), { secret: 'the-next-secret' }))).status).toBe(204);
    expect(await lastRow()).toMatchObject({ secret_index: 1 });
  });

  test.each(['text/plain', 'application/json; charset="', 'multipart/form-data; boundary=x', ''])(
    'the Content-Type is not judged: %p',
    async (type) => {
      const init = signed(sessionEvent(`s-${type}`));
      expect(
        (await send({ ...init, headers: { ...init.headers, 'content-type': type, 'user-agent': 'any' } })).status,
      ).toBe(204);
    },
  );

  test('the signature is checked over the raw bytes, never over JSON that was parsed', async () => {
    for (const body of [
      '{ "eventType" :"X",\n"a":1.0 }',
      '{"a":1,"a":2}',
      '\ufeff{"eventType":"X"}',
      'no json',
      '',
      '\xff\xfe',
    ]) {
      expect((await send(signed(Buffer.from(body, 'latin1')))).status).toBe(204);
    }
  });

  test('a secret that was rotated at one side only shows in the health, until a genuine delivery comes', async () => {
    const health = () => service.app.get(DeliveriesService).secretHealth();
    // The ledger counts by minutes, and a minute tells of the secret once it began after the last genuine delivery.
    await sql.query(`UPDATE webhook_deliveries SET received_at = received_at - interval '2 minutes'`);
    expect(await health()).toMatchObject({ status: 'ok' });
    for (let at = 0; at < 3; at++)
      await send(signed(sessionEvent('rotated'), { secret: 'only the platform knows it' }));
    await until('all three are in the ledger', async () => (await countOf('wrong-signature')) === 3);
    expect(await health()).toMatchObject({
      status: 'degraded',
      reason: expect.stringContaining('PLATFORM_WEBHOOK_SECRET'),
      facts: { wrongSignatures: 3 },
    });
    await send(signed(sessionEvent('genuine again')));
    expect(await health()).toMatchObject({ status: 'ok', facts: { wrongSignatures: 0 } });
    await sql.query('DELETE FROM webhook_rejections');
  });

  const refusals: [cause: string, change: (headers: Record<string, string>) => Record<string, string>][] = [
    ['missing-signature', ({ 'x-service-signature': _, ...rest }) => rest],
    ['missing-timestamp', ({ 'x-service-timestamp': _, ...rest }) => rest],
    ['malformed-signature', (h) => ({ ...h, 'x-service-signature': (h['x-service-signature'] ?? '').toUpperCase() })],
    ['malformed-signature', (h) => ({ ...h, 'x-service-signature': (h['x-service-signature'] ?? '').slice(2) })],
    ['malformed-signature', (h) => ({ ...h, 'x-service-signature': `${h['x-service-signature']}00` })],
    ['malformed-timestamp', (h) => ({ ...h, 'x-service-timestamp': `${h['x-service-timestamp']}:1` })],
    ['malformed-timestamp', (h) => ({ ...h, 'x-service-timestamp': '-1' })],
    ['malformed-timestamp', (h) => ({ ...h, 'x-service-timestamp': '1e12' })],
    ['wrong-signature', (h) => ({ ...h, 'x-service-timestamp': '1700000000000' })],
    ['wrong-signature', (h) => ({ ...h, 'x-service-signature': '0'.repeat(64) })],
    ['content-encoding', (h) => ({ ...h, 'content-encoding': 'gzip' })],
  ];
  test.each(refusals)('%s is refused with 401 and counted by cause', async (cause, change) => {
    const before = await countOf(cause);
    const kept = (await rows()).length;
    const init = signed(cause === 'content-encoding' ? gzipSync(sessionEvent('s')) : sessionEvent('s'));
    const answer = await send({ ...init, headers: change(init.headers) });
    expect([answer.status, JSON.parse(answer.text).type]).toEqual([401, 'urn:notebridge:problem:not-genuine']);
    await until('the ledger has it', async () => (await countOf(cause)) === before + 1);
    expect((await rows()).length).toBe(kept);
  });

  test.each(['x-service-signature', 'x-service-timestamp'])('%s twice in the headers is refused', async (name) => {
    const { headers, body } = signed(sessionEvent('twice'));
    const lines = Object.entries({ ...headers, host: 'x', 'content-length': String(body.length), connection: 'close' })
      .map(([key, value]) => `${key}: ${value}`)
      .concat(`${name}: ${headers[name]}`);
    const socket = createConnection(Number(new URL(service.url).port), '127.0.0.1');
    const answer = wholeAnswer(socket);
    // In one piece: the connection may end with the answer.
    socket.write(
      Buffer.concat([Buffer.from(`POST /webhooks/platform HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`), body]),
    );
    expect(await answer).toMatch(/^HTTP\/1.1 401 /);
  });

  test('the ledger is read by cause and minute, and a request never makes a row of its own', async () => {
    const before = await countOf('missing-signature');
    const begun = Date.now();
    await Promise.all(Array.from({ length: 200 }, () => send({ method: 'POST', body: 'x' })));
    await until('they are counted', async () => (await countOf('missing-signature')) >= before + 200);
    const response = await answerTo(`${service.url}/v1/webhook-rejections?limit=200`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}` },
    });
    const { items } = (await response.json()) as { items: { cause: string; minute: string; count: number }[] };
    const minutes = items.filter(
      ({ cause, minute }) => cause === 'missing-signature' && Date.parse(minute) > begun - 60_000,
    );
    expect(new Set(minutes.map(({ minute }) => minute)).size).toBe(minutes.length);
    expect(minutes.length).toBeLessThanOrEqual((Date.now() - begun) / 60_000 + 2);
    expect(minutes.reduce((sum, item) => sum + item.count, 0)).toBeGreaterThanOrEqual(200);
  });

  test('a body over the limit is 413 and counted, and one at the limit is taken', async () => {
    expect((await send(signed('x'.repeat(64 * 1024)))).status).toBe(204);
    const answer = await send(signed('x'.repeat(64 * 1024 + 1)));
    expect([answer.status, JSON.parse(answer.text).type]).toEqual([413, 'urn:notebridge:problem:body-too-large']);
    await until('the ledger has it', async () => (await countOf('body-too-large')) === 1);
  });

  test('an exact repeat is stored once, however it arrives', async () => {
    const init = signed(sessionEvent('repeated'));
    const before = (await rows()).length;
    const answers = await Promise.all(Array.from({ length: 20 }, () => send(init)));
    expect(answers.every(({ status }) => status === 204)).toBe(true);
    expect((await rows()).length).toBe(before + 1);
    await until('every repeat is noted', async () => (await lastRow()).repeats >= 19);
  });

  test('identical bodies with timestamps of their own are two deliveries', async () => {
    const before = (await rows()).length;
    await send(signed(sessionEvent('same'), { timestamp: '1700000000001' }));
    await send(signed(sessionEvent('same'), { timestamp: '1700000000002' }));
    expect((await rows()).length).toBe(before + 2);
  });
});

test('with an age window, a retry within it is taken and older or future ones are refused', async () => {
  const database = await freshDatabase();
  const service = await startWebhooks(database.url, { WEBHOOK_MAX_AGE_SECONDS: '3600', ROLES: 'api' });
  const now = new Date('2027-01-15T08:00:00Z');
  jest.spyOn(service.app.get(Clock), 'now').mockReturnValue(now);
  try {
    const ages = [0, 3_600, 3_601, -300, -301];
    const statuses: number[] = [];
    for (const age of ages) {
      const init = signed(sessionEvent('s'), { timestamp: String(now.getTime() - age * 1000) });
      statuses.push((await deliver(service, init)).status);
    }
    expect(statuses).toEqual([204, 204, 401, 204, 401]);
  } finally {
    await service.close();
    await database.drop();
  }
});
