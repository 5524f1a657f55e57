import { mkdirSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type CommitProxy, startCommitProxy } from '../harness/commit-proxy.js';
import { findRedisServer, type RedisServer, startRedis } from '../harness/redis-server.js';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { HealthReport } from '../src/operations/health-report.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { type Mirror, useMirrors, WEBHOOK_SECRET } from './support/service.js';

const newMirror = useMirrors();
const folder = (name: string) => path.join(process.env.TEST_FOLDER ?? '', `${name}-${process.pid}`);

const PEOPLE = 120;
const CALLS = 2 * PEOPLE;
const content = ['externalId,email,firstName,lastName']
  .concat(Array.from({ length: PEOPLE }, (_, n) => `p-${n},p-${n}@example.org,Pia,N${n}`))
  .join('\n');
const startImport = (service: Service) =>
  service.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
/** Calls that arrive in so many milliseconds. */
const arrivalsWithin = async (mirror: Mirror, ms: number) => {
  const before = mirror.arrivals();
  await delay(ms);
  return mirror.arrivals() - before;
};

async function completesByItself(mirror: Mirror, service: Service, id: string): Promise<void> {
  const ended = await service.importEnded(id);
  expect([ended.state, ended.counts.created, ended.counts.total]).toEqual(['completed', PEOPLE, PEOPLE]);
  expect(mirror.simulator.state.users.list()).toHaveLength(PEOPLE);
  expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
}

const withRedis = process.env.TEST_REDIS_URL ? describe : describe.skip;
withRedis('Redis, in the middle of an import', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    mkdirSync(folder('redis'));
    redis = await startRedis(findRedisServer() ?? '', folder('redis'));
  });
  afterAll(() => redis.stop('SIGKILL'));

  test('may be flushed, and killed and come back empty: the import completes by itself', async () => {
    const mirror = await newMirror({ calls: 1_800, env: { REDIS_URL: redis.url } });
    const [service] = await Promise.all([mirror.start(), mirror.start({ ROLES: 'worker' })]);
    const { id } = await startImport(service);
    await until('it is under way', () => mirror.arrivals() >= CALLS / 6);
    await flush(redis.port);
    await until('it goes on after the flush', () => mirror.arrivals() >= CALLS / 3);
    await redis.stop('SIGKILL');
    await delay(3_000);
    expect((await service.call<{ status: string }>('GET', '/health/ready')).status).toBe(200);
    const change = await service.call('PUT', '/v1/providers/late', {
      body: { email: 'late@example.org', firstName: 'L', lastName: 'T' },
    });
    expect(change.status).toBe(202);
    expect((await service.call('DELETE', '/v1/providers/late')).status).toBeLessThan(300);
    redis = await startRedis(findRedisServer() ?? '', folder('redis'), redis.port);
    await completesByItself(mirror, service, id);
  });
});

describe('a database that can not grant a slot', () => {
  test('means that nothing is sent, until it can again', async () => {
    const mirror = await newMirror({ calls: 1_800 });
    const [service] = await Promise.all([mirror.start(), mirror.start({ ROLES: 'worker' })]);
    const { id } = await startImport(service);
    await until('it is under way', () => mirror.arrivals() >= CALLS / 4);
    await closeDatabase(mirror, true);
    await delay(1_500); // what was granted before leaves within its second
    expect(await arrivalsWithin(mirror, 4_000)).toBe(0);
    expect((await fetch(`${service.url}/health/ready`)).status).toBe(503);
    await closeDatabase(mirror, false);
    await completesByItself(mirror, service, id);
  });
});

describe('a database that keeps every connection of the API waiting', () => {
  test('leaves the receiver ready: its inbox commits over connections of its own', async () => {
    const mirror = await newMirror();
    const service = await mirror.start({ ROLES: 'api' });
    const sql = new pg.Client({ connectionString: mirror.database.url });
    await sql.connect();
    await sql.query('BEGIN; LOCK TABLE people IN ACCESS EXCLUSIVE MODE');
    const waiting = Array.from({ length: 24 }, () => service.call('GET', '/v1/providers'));
    await until('they wait', async () => {
      const { rows } = await sql.query(`SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'people'::regclass`);
      return rows.length >= 16;
    });
    const ready = await service.call<HealthReport>('GET', '/health/ready');
    const timestamp = String(Date.now());
    const body = Buffer.from('{}');
    const delivery = await fetch(`${service.url}/webhooks/platform`, {
      method: 'POST',
      headers: {
        'x-service-timestamp': timestamp,
        'x-service-signature': signWebhook(WEBHOOK_SECRET, timestamp, body),
      },
      body,
    });
    await sql.query('ROLLBACK');
    await sql.end();
    await Promise.all(waiting);
    expect([ready.status, ready.body.status, ready.body.checks.inbox?.status]).toEqual([200, 'degraded', 'ok']);
    expect(delivery.status).toBe(204);
  });
});

describe('a database that dies while it commits a slot', () => {
  let proxy: CommitProxy;
  afterAll(() => proxy.close());

  test('leaves nobody to review, since nothing was sent', async () => {
    const mirror = await newMirror();
    const url = new URL(mirror.database.url);
    proxy = await startCommitProxy(Number(url.port));
    url.port = String(proxy.port);
    const service = await mirror.start({ DATABASE_URL: url.toString() });
    const provider = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    expect((await service.call('PUT', '/v1/providers/p-1', { body: provider, wait: 60 })).body.sync.state).toBe(
      'synced',
    );
    proxy.loseCommitAfter('INSERT INTO platform_calls', 'createClient');
    // Without an email nobody could find out later whether the create was done.
    const client = { firstName: 'Cleo', lastName: 'Adler', providers: ['p-1'] };
    const { body } = await service.call('PUT', '/v1/clients/c-1', { body: client, wait: 60 });
    expect([proxy.lost(), body.sync.state, body.sync.error]).toEqual([1, 'synced', null]);
    expect(mirror.usersOf('c-1')).toHaveLength(1);
  });
});

/** Closes a database to everybody, or opens it again. */
async function closeDatabase({ database }: Mirror, closed: boolean): Promise<void> {
  const name = new URL(database.url).pathname.slice(1);
  const admin = new pg.Client({ connectionString: process.env.TEST_PG_URL });
  await admin.connect();
  await admin.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS ${!closed}`);
  if (closed) await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
  await admin.end();
}

async function flush(port: number): Promise<void> {
  const socket = net.connect(port, '127.0.0.1');
  socket.write('FLUSHALL\r\n');
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
}
