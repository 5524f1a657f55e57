import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type CommitProxy, startCommitProxy } from '../harness/commit-proxy.js';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../harness/redis-server.js';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { HealthReport } from '../src/operations/health-checks.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { callRoom } from './support/call-room.js';
import { type Mirror, useMirrors } from './support/service.js';
import { settledPerson } from './support/settled-person.js';

const newMirror = useMirrors();
const folder = (name: string) => path.join(process.env.TEST_FOLDER ?? '', `${name}-${process.pid}`);

/** Each takes two calls. */
const PEOPLE = 100;
/** More than can be under way at once; a few times as many are left to do. */
const MANY = 50;
const content = ['externalId,email,firstName,lastName']
  .concat(Array.from({ length: PEOPLE }, (_, n) => `p-${n},p-${n}@example.org,Pia,N${n}`))
  .join('\n');
const startImport = (service: Service) =>
  service.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
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
    const mirror = await newMirror({ calls: 3_000, env: { REDIS_URL: redis.url } });
    const [service] = await Promise.all([mirror.start(), mirror.start({ ROLES: 'worker' })]);
    // It stands still in its middle until Redis is as it is to be.
    const room = callRoom(mirror);
    await room.leave(MANY);
    const { id } = await startImport(service);
    await room.used();
    await askRedis(redis.port, 'FLUSHALL');
    await room.leave(MANY);
    await room.used();
    await redis.stop('SIGKILL');
    await room.leave(MANY);
    await room.used();
    await until('the service takes requests', async () => (await service.call('GET', '/health/ready')).status === 200);
    const change = await service.call('PUT', '/v1/providers/late', {
      body: { email: 'late@example.org', firstName: 'L', lastName: 'T' },
    });
    expect(change.status).toBe(202);
    await service.call('DELETE', '/v1/providers/late');
    expect((await settledPerson(service, 'providers/late')).sync.state).toBe('deleted');
    await room.free();
    redis = await startRedis(findRedisServer() ?? '', folder('redis'), redis.port);
    await completesByItself(mirror, service, id);
  });
});

describe('a database that can not grant a permit', () => {
  test('means that nothing is sent, until it can again', async () => {
    const mirror = await newMirror({ calls: 3_000 });
    const [service, worker] = await Promise.all([mirror.start(), mirror.start({ ROLES: 'worker' })]);
    const { id } = await startImport(service);
    await until('it is under way', () => mirror.arrivals() >= PEOPLE / 2);
    const granted = await closeDatabase(mirror);
    for (const { output } of [service, worker]) {
      await until('it looks for work in vain', () => /"msg":"a poll failed[^\n]*"poll":"people"/.test(output()));
    }
    await delay(1_000); // a call without a permit would arrive by now; one that comes later is missed here, no more
    expect(mirror.arrivals()).toBeLessThanOrEqual(granted);
    await until('it is not ready', async () => (await fetch(`${service.url}/health/ready`)).status === 503);
    await allowConnections(mirror, true);
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
    const report = () => service.call<HealthReport>('GET', '/health/ready');
    await until('it is ready for webhooks', async () => {
      const { status, body } = await report();
      return status === 200 && body.status === 'degraded' && body.checks.inbox?.status === 'ok';
    });
    const timestamp = String(Date.now());
    const body = Buffer.from('{}');
    const headers = {
      'x-service-timestamp': timestamp,
      'x-service-signature': signWebhook(WEBHOOK_SECRET, timestamp, body),
    };
    // A busy machine may not keep one in time: it is sent again, as the platform does.
    await until('a webhook is acknowledged', async () => {
      const { status } = await fetch(`${service.url}/webhooks/platform`, { method: 'POST', headers, body });
      return status === 204;
    });
    await sql.query('ROLLBACK');
    await sql.end();
    await Promise.all(waiting);
  });
});

describe('a database that dies while it commits a permit', () => {
  let proxy: CommitProxy;
  afterAll(() => proxy.close());

  test('leaves nobody to review, since nothing was sent', async () => {
    const mirror = await newMirror();
    const url = new URL(mirror.database.url);
    proxy = await startCommitProxy(Number(url.port));
    url.port = String(proxy.port);
    const service = await mirror.start({ DATABASE_URL: url.toString() });
    const provider = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    await service.call('PUT', '/v1/providers/p-1', { body: provider });
    expect((await settledPerson(service, 'providers/p-1')).sync.state).toBe('synced');
    proxy.loseCommitAfter('INSERT INTO platform_calls', 'createClient');
    // Without an email nobody could find out later whether the create was done.
    const client = { firstName: 'Cleo', lastName: 'Adler', providers: ['p-1'] };
    await service.call('PUT', '/v1/clients/c-1', { body: client });
    const { sync } = await settledPerson(service, 'clients/c-1');
    expect([proxy.lost(), sync.state, sync.error]).toEqual([1, 'synced', null]);
    expect(mirror.usersOf('c-1')).toHaveLength(1);
  });
});

/** Closes a database to everybody, and answers how many calls were ever granted in it. */
async function closeDatabase(mirror: Mirror): Promise<number> {
  const own = new pg.Client({ connectionString: mirror.database.url });
  await own.connect();
  await allowConnections(mirror, false);
  // Whoever is told to go may still commit what is under way.
  await until('everybody else is gone', async () => {
    const { rows } = await own.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    return rows.length === 0;
  });
  const { rows } = await own.query<{ granted: number }>('SELECT count(*)::int AS granted FROM platform_calls');
  await own.end();
  return rows[0]?.granted ?? 0;
}

async function allowConnections({ database }: Mirror, allowed: boolean): Promise<void> {
  const admin = new pg.Client({ connectionString: process.env.TEST_PG_URL });
  await admin.connect();
  await admin.query(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} WITH ALLOW_CONNECTIONS ${allowed}`);
  await admin.end();
}
