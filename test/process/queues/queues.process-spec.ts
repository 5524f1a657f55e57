import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../../../harness/redis-server.js';
import type { Service } from '../../../harness/service.js';
import { until } from '../../../harness/until.js';
import { describeOnBothBackends } from '../../support/backends.js';
import { partIs } from '../../support/health.js';
import { type TestWorld, useTestWorlds } from '../../support/service.js';
import { settledPerson } from '../../support/settled-person.js';

/** A user of Redis as managed services create it, without INFO. */
const USER = 'ACL SETUSER app reset on >secret ~* &* +@all -@dangerous';

describeOnBothBackends('a service', ({ name, queuePrefix }) => {
  const newWorld = useTestWorlds();
  let world: TestWorld;
  let service: Service;
  /** A separate server, which the tests stop. */
  let redis: RedisServer | undefined;
  let folder: string;

  const startServer = async () => {
    redis = await startRedis(findRedisServer() ?? '', folder, redis?.port);
    expect(await askRedis(redis.port, USER)).toBe('+OK');
  };
  beforeAll(async () => {
    folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'queues-'));
    if (name === 'Redis') await startServer();
    const url = redis ? `redis://app:secret@127.0.0.1:${redis.port}` : '';
    const env = { REDIS_URL: url, QUEUE_PREFIX: queuePrefix, PLATFORM_TIMEOUT_SECONDS: '5' };
    world = await newWorld({ env });
    service = await world.start();
  });
  afterAll(() => redis?.stop('SIGKILL'));

  const put = (id: string) =>
    service.call('PUT', `/v1/providers/${id}`, {
      body: { email: `${id}@example.org`, firstName: 'Pia', lastName: 'Ruiz' },
    });
  const isSynced = async (id: string) =>
    expect((await settledPerson(service, `providers/${id}`)).sync.state).toBe('synced');

  test('continues the work of a killed process once its call has surely ended', async () => {
    await put('first');
    await isSynced('first');
    world.hold({ operation: 'checkUser' });
    const before = world.arrivals('checkUser');
    await put('killed');
    await until('its check is in flight', () => world.arrivals('checkUser') > before);
    await service.kill('SIGKILL');
    world.release();
    service = await world.start();
    await isSynced('killed');
    expect(world.usersOf('killed')).toHaveLength(1);
    if (!redis) expect(await service.kill('SIGTERM')).toBe(0);
  });

  if (name === 'PostgreSQL') return;
  test('accepts work while Redis is down or refuses commands, does it afterwards, and stops with 0', async () => {
    await redis?.stop('SIGKILL');
    const { reason } = await partIs(service, 'queue', 'degraded');
    expect(reason).toContain('REDIS_URL');
    expect((await put('away')).status).toBe(202);
    await startServer();
    await partIs(service, 'queue', 'ok');
    await service.printed(/the queues are available again/);
    await isSynced('away');
    await put('back');
    await isSynced('back');
    await askRedis(redis?.port ?? 0, `${USER} -@scripting`);
    expect((await partIs(service, 'queue', 'degraded')).reason).toContain('a command that the queues need');
    expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
    await redis?.stop('SIGKILL');
    expect(await service.kill('SIGTERM')).toBe(0);
    // A line of another form would be a whole connection with its password, printed by a library.
    const lines = service.output().trim().split('\n');
    expect(lines.filter((line) => !/^\{"level":"(info|warn)"/.test(line))).toEqual([]);
    expect(service.output()).not.toContain('redis://');
    expect(world.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
  });
});
