import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { Receiver } from '../src/webhooks/receiver.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { SECRET, sessionEvent, signed, startWebhooks, type WebhooksApp } from './support/webhooks-app.js';

/** Milliseconds within which 503 must be answered, and what a busy test machine may add to them. */
const IN_TIME = 2_000;
const SLACK = 300;

describe('the receiver without its database', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let service: WebhooksApp;
  let sql: pg.Client;

  beforeAll(async () => {
    database = await freshDatabase();
    const url = new URL(database.url);
    proxy = await startTcpProxy(Number(url.port));
    url.port = String(proxy.port);
    service = await startWebhooks(url.toString(), { ROLES: 'api' });
    sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
  });

  afterEach(async () => {
    await proxy.restore();
    await until('deliveries are taken again', async () => (await send(sessionEvent('probe'))).status === 204);
  });

  afterAll(async () => {
    await sql?.end();
    await service?.close();
    await proxy?.close();
    await database?.drop();
  });

  async function send(body: string, timestamp = String(Date.now())) {
    const start = performance.now();
    const response = await fetch(`${service.url}/webhooks/platform`, signed(body, { timestamp }));
    const text = await response.text();
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      text,
      ms: performance.now() - start,
    };
  }
  const rows = async (): Promise<number> =>
    (await sql.query('SELECT count(*)::int AS n FROM webhook_deliveries')).rows[0].n;
  const many = (count: number, name: string) =>
    Promise.all(Array.from({ length: count }, (_, index) => send(sessionEvent(`${name}-${index}`), '1800000000000')));

  test.each(['stopped', 'stuck'] as const)(
    'with PostgreSQL %s every delivery is answered 503 within 2 seconds, and its next retry lands when it is back',
    async (how) => {
      await many(20, `warm-${how}`);
      const before = await rows();
      if (how === 'stopped') await proxy.cut();
      else proxy.stall();
      for (const round of ['first', 'again']) {
        const answers = await many(100, `${how}-${round}`);
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
        expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(IN_TIME + SLACK);
        expect(answers[0]).toMatchObject({ retryAfter: '1' });
        expect(JSON.parse(answers[0]?.text ?? '')).toMatchObject({ type: 'urn:notebridge:problem:not-kept' });
      }
      expect((await service.app.get(Receiver).health()).status).toBe('down');

      await proxy.restore();
      await until(
        'a retry lands',
        async () => (await send(sessionEvent(`${how}-first-0`), '1800000000000')).status === 204,
      );
      expect((await service.app.get(Receiver).health()).status).toBe('ok');
      const retries = await many(100, `${how}-first`);
      expect(new Set(retries.map(({ status }) => status))).toEqual(new Set([204]));
      expect(await rows()).toBe(before + 100);
    },
    60_000,
  );

  test('what is not genuine is refused as ever while the database is away', async () => {
    await proxy.cut();
    const answer = await fetch(`${service.url}/webhooks/platform`, { method: 'POST', body: 'x' });
    expect(answer.status).toBe(401);
  });

  test('under load through a database that hangs for seconds, no answer is late and nothing acknowledged is missing', async () => {
    const acknowledged: string[] = [];
    const timestamp = '1800000000001';
    const waits: number[] = [];
    const statuses = new Set<number>();
    const underWay: Promise<void>[] = [];
    const one = async (name: string) => {
      const { status, ms } = await send(sessionEvent(name), timestamp);
      statuses.add(status);
      waits.push(ms);
      if (status === 204) acknowledged.push(signWebhook(SECRET, timestamp, Buffer.from(sessionEvent(name))));
    };
    const start = performance.now();
    for (let index = 0; performance.now() - start < 6_000; index += 1) {
      underWay.push(one(`load-${index}`));
      if (index === 300) proxy.stall();
      if (index === 900) await proxy.restore();
      await delay(4);
    }
    await Promise.all(underWay);
    expect(Math.max(...waits)).toBeLessThan(IN_TIME + SLACK);
    expect(statuses).toEqual(new Set([204, 503]));
    const { rows: kept } = await sql.query<{ s: string }>(
      "SELECT encode(signature, 'hex') AS s FROM webhook_deliveries",
    );
    const inbox = new Set(kept.map((row) => row.s));
    expect(acknowledged.filter((signature) => !inbox.has(signature))).toEqual([]);
    expect(acknowledged.length).toBeGreaterThan(100);
  });

  test('a delivery that waits when the service stops is committed before it leaves', async () => {
    const other = await startWebhooks(database.url, { ROLES: 'api' });
    const before = await rows();
    const answers = Array.from({ length: 200 }, async (_, index) => {
      const init = signed(sessionEvent(`leaving-${index}`));
      return (await fetch(`${other.url}/webhooks/platform`, init).catch(() => undefined))?.status;
    });
    await until('some are in', async () => (await rows()) > before);
    await other.close();
    const kept = (await Promise.all(answers)).filter((status) => status === 204).length;
    expect(await rows()).toBeGreaterThanOrEqual(before + kept);
    expect(kept).toBeGreaterThan(0);
  });
});

test('a rotation under load: with both secrets nothing genuine is refused; with the old one retired it is', async () => {
  const database = await freshDatabase();
  const secrets = ['old-secret', 'old-secret,new-secret', 'new-secret,old-secret', 'new-secret'];
  const sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
  try {
    for (const setting of secrets) {
      const service = await startWebhooks(database.url, { ROLES: 'api', PLATFORM_WEBHOOK_SECRET: setting });
      const send = async (secret: string, index: number) => {
        const init = signed(sessionEvent(`${setting}-${index}`), { secret });
        return (await fetch(`${service.url}/webhooks/platform`, init)).status;
      };
      const known = setting.split(',');
      const statuses = await Promise.all(
        Array.from({ length: 400 }, async (_, index) => {
          const secret = index % 2 === 0 ? 'old-secret' : 'new-secret';
          return [secret, await send(secret, index)] as const;
        }),
      );
      expect(statuses.filter(([secret, status]) => status !== (known.includes(secret) ? 204 : 401))).toEqual([]);
      await service.close();
    }
    const { rows } = await sql.query(
      'SELECT secret_index, count(*)::int AS n FROM webhook_deliveries GROUP BY 1 ORDER BY 1',
    );
    expect(rows).toEqual([
      { secret_index: 0, n: 800 },
      { secret_index: 1, n: 400 },
    ]);
  } finally {
    await sql.end();
    await database.drop();
  }
});
