import type pg from 'pg';
import { startTcpProxy, type TcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { Receiver } from '../src/webhooks/receive/receiver.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { deliver, sessionEvent, signed } from './support/webhook-requests.js';
import { startWebhooks, type WebhooksApp } from './support/webhooks-app.js';

const TIMESTAMP = '1800000000000';

/** The name of a delivery's row, from what the delivery tells of. */
const signatureOf = (name: string) => signWebhook(WEBHOOK_SECRET, TIMESTAMP, Buffer.from(sessionEvent(name)));

// How soon 503 is answered is measured by `npm run bench -- outage`; here: before the database is back.
describe('the receiver without its database', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let service: WebhooksApp;
  let sql: pg.Pool;

  beforeAll(async () => {
    database = await freshDatabase();
    const url = new URL(database.url);
    proxy = await startTcpProxy(Number(url.port));
    url.port = String(proxy.port);
    service = await startWebhooks(url.toString(), { ROLES: 'api' });
    sql = database.sql;
  });

  afterEach(async () => {
    await proxy.restore();
    await deliver(service, signed(sessionEvent('probe')));
  });

  afterAll(async () => {
    await service?.close();
    await proxy?.close();
    await database?.drop();
  });

  const requestOf = (name: string) => signed(sessionEvent(name), { timestamp: TIMESTAMP });
  const namesOf = (count: number, what: string) => Array.from({ length: count }, (_, index) => `${what}-${index}`);
  /** Sends once. */
  async function send(name: string) {
    const response = await fetch(`${service.url}/webhooks/platform`, requestOf(name));
    return { status: response.status, retryAfter: response.headers.get('retry-after'), text: await response.text() };
  }
  /** Those of the deliveries that the inbox has not. */
  async function missing(names: readonly string[]): Promise<string[]> {
    const { rows } = await sql.query<{ s: string }>("SELECT encode(signature, 'hex') AS s FROM webhook_deliveries");
    const inbox = new Set(rows.map((row) => row.s));
    return names.filter((name) => !inbox.has(signatureOf(name)));
  }
  const health = async () => (await service.app.get(Receiver).health()).status;

  test.each(['stopped', 'stuck'] as const)(
    'with PostgreSQL %s every delivery is answered 503 before it is back, and its next retry lands',
    async (how) => {
      await Promise.all(namesOf(20, `warm-${how}`).map((name) => deliver(service, requestOf(name))));
      if (how === 'stopped') await proxy.cut();
      else proxy.stall();
      const names = namesOf(100, how);
      for (const round of [names, namesOf(100, `${how}-again`)]) {
        const answers = await Promise.all(round.map(send));
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
        expect(answers[0]).toMatchObject({ retryAfter: '1' });
        expect(JSON.parse(answers[0]?.text ?? '')).toMatchObject({ type: 'urn:notebridge:problem:not-kept' });
      }
      expect(await health()).toBe('down');
      expect(await missing(names)).toEqual(names);

      await proxy.restore();
      const retries = await Promise.all(names.map((name) => deliver(service, requestOf(name))));
      expect(new Set(retries.map(({ status }) => status))).toEqual(new Set([204]));
      expect(await missing(names)).toEqual([]);
      await until('the health is well again', async () => (await health()) === 'ok');
    },
  );

  test('while another transaction holds the inbox locked, deliveries are answered 503 and health says so', async () => {
    const holder = await sql.connect();
    await holder.query('BEGIN; LOCK TABLE webhook_deliveries IN ACCESS EXCLUSIVE MODE');
    const answer = await send('locked');
    const found = await health();
    await holder.query('ROLLBACK').finally(() => holder.release());
    expect(answer.status).toBe(503);
    expect(found).toBe('down');
    await until('the health is well again', async () => (await health()) === 'ok');
  });

  test('what is not genuine is refused as ever while the database is away', async () => {
    await proxy.cut();
    const answer = await fetch(`${service.url}/webhooks/platform`, { method: 'POST', body: 'x' });
    expect(answer.status).toBe(401);
  });

  test('under load through a database that hangs for a while, nothing acknowledged is missing', async () => {
    const acknowledged: string[] = [];
    let refused = 0;
    let sent = 0;
    let isOver = false;
    const sender = async () => {
      while (!isOver) {
        const name = `load-${sent++}`;
        const { status } = await send(name);
        if (status === 204) acknowledged.push(name);
        else if (status === 503) refused += 1;
        else throw new Error(`A delivery was answered ${status}.`);
      }
    };
    const senders = Promise.all(Array.from({ length: 48 }, sender));
    await until('the load is taken', () => acknowledged.length > 200);
    proxy.stall();
    const before = refused;
    await until('what comes meanwhile is refused', () => refused > before + 48);
    await proxy.restore();
    const then = acknowledged.length;
    await until('the load is taken again', () => acknowledged.length > then + 200);
    isOver = true;
    await senders;
    expect(await missing(acknowledged)).toEqual([]);
  });

  test('a delivery that waits when the service stops is committed before it leaves', async () => {
    const other = await startWebhooks(database.url, { ROLES: 'api' });
    const acknowledged: string[] = [];
    let sent = 0;
    let isLeaving = false;
    const sender = async () => {
      for (;;) {
        const name = `leaving-${sent++}`;
        const answer = await fetch(`${other.url}/webhooks/platform`, requestOf(name)).catch(() => undefined);
        if (answer?.status === 204) acknowledged.push(name);
        else if (isLeaving) return;
      }
    };
    const senders = Promise.all(Array.from({ length: 32 }, sender));
    await until('some are in', () => acknowledged.length > 100);
    isLeaving = true;
    await other.close();
    const lost = new Set(await missing(namesOf(sent, 'leaving')));
    await senders;
    expect(acknowledged.filter((name) => lost.has(name))).toEqual([]);
  });
});

test('a rotation under load: with both secrets nothing genuine is refused; with the old one retired it is', async () => {
  const DELIVERIES = 100;
  const database = await freshDatabase();
  const secrets = ['old-secret', 'old-secret,new-secret', 'new-secret,old-secret', 'new-secret'];
  try {
    for (const setting of secrets) {
      const service = await startWebhooks(database.url, { ROLES: 'api', PLATFORM_WEBHOOK_SECRET: setting });
      const known = setting.split(',');
      const statuses = await Promise.all(
        Array.from({ length: DELIVERIES }, async (_, index) => {
          const secret = index % 2 === 0 ? 'old-secret' : 'new-secret';
          const { status } = await deliver(service, signed(sessionEvent(`${setting}-${index}`), { secret }));
          return [secret, status] as const;
        }),
      );
      expect(statuses.filter(([secret, status]) => status !== (known.includes(secret) ? 204 : 401))).toEqual([]);
      await service.close();
    }
    const { rows } = await database.sql.query(
      'SELECT secret_index, count(*)::int AS n FROM webhook_deliveries GROUP BY 1 ORDER BY 1',
    );
    expect(rows).toEqual([
      { secret_index: 0, n: 2 * DELIVERIES },
      { secret_index: 1, n: DELIVERIES },
    ]);
  } finally {
    await database.drop();
  }
});
