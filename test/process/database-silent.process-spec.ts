import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Service } from '../../harness/service.js';
import { KEEP_ALIVE_ENDS_MS, startProxyOf, type TcpProxy } from '../../harness/tcp-proxy.js';
import { until } from '../../harness/until.js';
import { connectionShares } from '../../src/database/connect/connection-shares.js';
import { newPool } from '../../src/database/connect/pools.js';
import { Database } from '../../src/database/database.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { signWebhook } from '../../src/webhooks/receive/webhook-signature.js';
import { WEBHOOK_SECRET } from '../support/app.js';
import { many, providerLine, providersCsv } from '../support/bulk.js';
import { freshDatabase, type TestDatabase } from '../support/databases.js';
import { partIs } from '../support/health.js';
import { type TestWorld, useTestWorlds } from '../support/service.js';
import { deliver, sessionEvent, signed } from '../support/webhook-requests.js';

/** The connection shares of a process with the default settings. */
const SHARES = connectionShares({ DATABASE_CONNECTIONS: 19, ROLES: ['api', 'worker'] });

/** The timestamp of signed deliveries, so that a retry is the same delivery. */
const NOW = '1800000000000';

/** A proxy whose connections fall silent as soon as the server is ready for their first statement. */
async function silentAtFirst(database: TestDatabase): Promise<{ url: string; close(): Promise<void> }> {
  const url = new URL(database.url);
  const port = Number(url.port);
  const sockets: Socket[] = [];
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    sockets.push(client, upstream);
    client.on('error', () => undefined).pipe(upstream);
    upstream
      .on('error', () => undefined)
      .on('data', (bytes) => {
        client.write(bytes);
        if (bytes.includes(READY_FOR_QUERY)) client.unpipe().pause();
      });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url.port = String((server.address() as AddressInfo).port);
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    await once(server.close(), 'close');
  };
  return { url: url.toString(), close };
}

/** The message with which a server is ready: its type and length (PostgreSQL manual, Message Formats). */
const READY_FOR_QUERY = Buffer.from([0x5a, 0, 0, 0, 5]);

describe('a connection', () => {
  test('fails within seconds if it falls silent before its first statement is answered', async () => {
    const home = await freshDatabase();
    const proxy = await silentAtFirst(home);
    const prisma = new PrismaService(proxy.url, SHARES);
    const database = new Database(prisma);
    const began = performance.now();
    await expect(database.transaction((tx) => tx.query('SELECT 1'), 'bulk')).rejects.toThrow('timeout');
    expect(performance.now() - began).toBeLessThan(30_000);
    await prisma.onApplicationShutdown();
    await proxy.close();
    await home.drop();
  });

  test('whose answer is overdue is not used again', async () => {
    const home = await freshDatabase();
    const connection = { connectionString: home.url, application_name: 'overdue' };
    const pool = newPool({ ...connection, query_timeout: 100, max: 1 });
    const client = await pool.connect();
    await expect(client.query('SELECT pg_sleep(2)')).rejects.toThrow('Query read timeout');
    await expect(client.query('ROLLBACK')).rejects.toThrow('Client was closed');
    client.release();
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
    await home.drop();
  });
});

describe('a service', () => {
  const newWorld = useTestWorlds();
  let world: TestWorld;
  let service: Service;
  let proxy: TcpProxy;

  beforeAll(async () => {
    const database = await freshDatabase();
    const through = await startProxyOf(database.url);
    proxy = through.proxy;
    world = await newWorld({ database, env: { DATABASE_URL: through.url.href } });
    service = await world.start();
  });
  afterAll(() => proxy.close());

  const send = (name: string) => deliver(service, signed(sessionEvent(name), { secret: WEBHOOK_SECRET }));

  test('stays ready for webhooks while every connection of the API waits for a lock', async () => {
    const holder = await world.database.sql.connect();
    await holder.query('BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE');
    const waiting = Array.from({ length: 24 }, () => service.call('GET', '/v1/providers'));
    const blocked = `SELECT FROM pg_locks WHERE NOT granted AND relation = 'people'::regclass`;
    await until('they wait', async () => (await world.sql(blocked)).length >= SHARES.usual);
    await until('it is ready for webhooks', async () => {
      const { status, body } = await service.call<HealthReport>('GET', '/health/ready');
      return status === 200 && body.status === 'degraded' && body.checks.inbox?.status === 'ok';
    });
    expect((await send('waiting')).status).toBe(204);
    await holder.query('ROLLBACK');
    holder.release();
    await Promise.all(waiting);
  });

  test.each(['cut', 'stall'] as const)(
    'answers every delivery with 503 after a %s, and takes its retry',
    async (how) => {
      const once = async (name: string) => {
        const answer = await fetch(`${service.url}/webhooks/platform`, signed(sessionEvent(name), { timestamp: NOW }));
        const { type } = (await answer.json()) as { type: string };
        return [answer.status, answer.headers.get('retry-after'), type];
      };
      const names = Array.from({ length: 50 }, (_, at) => `${how}-${at}`);
      await proxy[how]();
      const answers = await Promise.all(names.map(once));
      expect(new Set(answers.map(String))).toEqual(new Set(['503,1,urn:notebridge:problem:not-kept']));
      const forged = await fetch(`${service.url}/webhooks/platform`, { method: 'POST', body: 'x' });
      expect(forged.status).toBe(401);
      const report = await fetch(`${service.url}/health/ready`);
      expect([report.status, await report.json()]).toMatchObject([503, { checks: { inbox: { status: 'down' } } }]);
      expect(await kept(names)).toEqual([]);
      await proxy.restore();
      const retries = names.map((name) => deliver(service, signed(sessionEvent(name), { timestamp: NOW })));
      expect(new Set((await Promise.all(retries)).map(({ status }) => status))).toEqual(new Set([204]));
      expect(await kept(names)).toHaveLength(names.length);
      await partIs(service, 'inbox', 'ok');
      // The poller has one line about PostgreSQL for all loops.
      expect(service.output()).not.toMatch(/a claim failed|a heartbeat failed/);
    },
  );

  const kept = (names: string[]) => {
    const signatures = names.map((name) => signWebhook(WEBHOOK_SECRET, NOW, Buffer.from(sessionEvent(name))));
    const text = "SELECT FROM webhook_deliveries WHERE encode(signature, 'hex') = ANY ($1)";
    return world.sql(text, [signatures]);
  };

  test('answers a delivery with 503 while another transaction locks the inbox', async () => {
    const holder = await world.database.sql.connect();
    await holder.query('BEGIN; LOCK TABLE webhook_deliveries IN ACCESS EXCLUSIVE MODE');
    const answer = await fetch(`${service.url}/webhooks/platform`, signed(sessionEvent('locked')));
    await holder.query('ROLLBACK');
    holder.release();
    expect(answer.status).toBe(503);
    expect((await send('locked')).status).toBe(204);
  });

  test('continues over new connections after every open one falls silent, uploads included', async () => {
    const isShown = async (name: string) => (await service.call('GET', `/v1/sessions/${name}`)).status === 200;
    const upload = (prefix: string) =>
      service.startImport('kind=providers', [providersCsv(many(3, prefix).map((id) => providerLine(id)))]);

    await send('before');
    const { id } = await upload('before');
    proxy.silence(KEEP_ALIVE_ENDS_MS);
    const uploads = many(SHARES.uploads, 'during').map((prefix) => upload(prefix));
    expect((await send('after')).status).toBe(204);
    await until('the deliveries are handled', async () => (await isShown('before')) && (await isShown('after')));
    expect((await service.importEnded(id)).state).toBe('completed');
    // Each retries until it is read: as many as there are places, so that one which stayed taken would show.
    for (const { id } of await Promise.all(uploads)) expect((await service.importEnded(id)).state).toBe('completed');
    await partIs(service, 'database', 'ok');
    expect(world.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
    expect(await service.kill('SIGTERM')).toBe(0);
  });
});
