import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { Logger } from '@nestjs/common';
import { askRedis, findRedisServer, type RedisServer, startRedis } from '../../harness/redis-server.js';
import { startTcpProxy } from '../../harness/tcp-proxy.js';
import { Clock } from '../../src/config/clock.js';
import { prepareQueueStore } from '../../src/queue/backend/prepare-queue-store.js';
import { RedisWorkStore } from '../../src/queue/work/redis-store.js';
import { useWorld } from '../world/use-world.js';
import { openQueues, type RealQueues } from './real-queues.js';

const world = useWorld();
const program = findRedisServer() ?? '';
const servers: RedisServer[] = [];
const opened: RealQueues[] = [];
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(process.env.TEST_FOLDER ?? '', 'redis-'));
});
afterEach(async () => {
  jest.restoreAllMocks();
  for (const { close } of opened.splice(0)) await close();
  for (const server of servers.splice(0)) await server.stop('SIGKILL');
});

async function newRedis(settings: Record<string, string | number> = {}): Promise<RedisServer> {
  const server = await startRedis(program, folder, 0, settings);
  servers.push(server);
  return server;
}

/** The address for a user that may do what the rules allow. */
async function withUser({ port }: RedisServer, rules: string): Promise<string> {
  expect(await askRedis(port, `ACL SETUSER app reset on >secret ~test:* ${rules}`)).toBe('+OK');
  return `redis://app:secret@127.0.0.1:${port}`;
}

const envOf = (url: string) => ({ REDIS_URL: url, QUEUE_PREFIX: 'test', DATABASE_URL: '' });
const prepare = (url: string) => prepareQueueStore(envOf(url), undefined);

function open(url: string): RealQueues {
  const queues = openQueues(world, new RedisWorkStore(url, 'test', new Clock()));
  opened.push(queues);
  return queues;
}

/** Looks many times while connections are lost and opened again. */
async function staysDegraded({ isDegraded, fault }: RealQueues, reason: string): Promise<void> {
  await isDegraded(reason);
  for (let looks = 0; looks < 40; looks += 1) {
    expect(await fault()).toContain(reason);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Error replies of Redis in three seconds. */
async function errorReplies({ port }: RedisServer): Promise<number> {
  const count = async () => Number(/total_error_replies:(\d+)/.exec(await askRedis(port, 'INFO stats'))?.[1]);
  const before = await count();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  return (await count()) - before;
}

const onRedis = program === '' ? describe.skip : describe;
onRedis('the queues on Redis', () => {
  test('work for a user without INFO, and warn at start of what was not checked', async () => {
    const url = await withUser(await newRedis(), '+@all -@dangerous');
    expect(await prepare(url)).toEqual([expect.stringContaining('may not run INFO')]);
    const queues = open(url);
    await queues.work();
    expect((await queues.health()).status).toBe('ok');
    expect(await queues.close()).toBe('closed');
  });

  test('fetch once a second for a user without EVAL, name the cause, and close', async () => {
    const redis = await newRedis();
    const url = await withUser(redis, '+@all -@dangerous -@scripting');
    expect((await prepare(url))[0]).toContain('a command that the queues need');
    const queues = open(url);
    await queues.isDegraded('a command that the queues need');
    expect(await errorReplies(redis)).toBeLessThan(15);
    await withUser(redis, '+@all -@dangerous');
    await queues.isHealthy();
    await queues.work();
    await withUser(redis, '+@all -@dangerous -@scripting');
    expect(await queues.close()).toBe('closed');
  });

  test('are not healthy while only workers fail', async () => {
    const queues = open(await withUser(await newRedis(), '+@all -@dangerous -bzpopmin'));
    await staysDegraded(queues, 'a command that the queues need');
    expect(await queues.close()).toBe('closed');
  });

  test('survive a Redis without memory, and log one line about its failure and one about its end', async () => {
    const lines: unknown[] = [];
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((line) => lines.push(line));
    jest.spyOn(Logger.prototype, 'log').mockImplementation((line) => lines.push(line));
    const redis = await newRedis();
    const queues = open(redis.url);
    await queues.work();
    await askRedis(redis.port, 'CONFIG SET maxmemory 1');
    expect((await prepare(redis.url))[0]).toContain('out of memory');
    await queues.isDegraded('out of memory');
    expect(await errorReplies(redis)).toBeLessThan(20);
    await askRedis(redis.port, 'CONFIG SET maxmemory 0');
    await queues.isHealthy();
    await queues.work();
    expect(await queues.close()).toBe('closed');
    expect(lines).toEqual([expect.stringContaining('out of memory'), 'the queues are available again']);
  });

  test('follow a failover, although the former primary keeps its connections', async () => {
    const [former, next] = [await newRedis(), await newRedis()];
    const proxy = await startTcpProxy(former.port);
    const queues = open(`redis://127.0.0.1:${proxy.port}`);
    await queues.work();
    await askRedis(former.port, `REPLICAOF 127.0.0.1 ${next.port}`);
    expect((await prepare(former.url))[0]).toContain('read-only replica');
    await staysDegraded(queues, 'read-only replica');
    expect(await errorReplies(former)).toBeLessThan(200); // a worker that spins gets thousands a second
    proxy.lead(next.port);
    await queues.isHealthy();
    await queues.work();
    expect(await askRedis(next.port, 'EXISTS test:compliance:meta')).toBe(':1');
    expect(await queues.close()).toBe('closed');
    await proxy.close();
  });

  test('stay healthy while one answer is late, as on a busy machine', async () => {
    const redis = await newRedis();
    const queues = open(redis.url);
    await queues.work();
    await askRedis(redis.port, 'CLIENT PAUSE 2000');
    expect((await queues.health()).status).toBe('ok');
    await queues.isHealthy();
    expect(await queues.close()).toBe('closed');
  });

  test('replace connections that fell silent, as after a failover', async () => {
    const proxy = await startTcpProxy((await newRedis()).port);
    const queues = open(`redis://127.0.0.1:${proxy.port}`);
    await queues.work();
    proxy.silence();
    await queues.work();
    await queues.isHealthy();
    expect(await queues.close()).toBe('closed');
    await proxy.close();
  });

  test('drop the adds that Redis cannot take', async () => {
    const redis = await newRedis();
    const queues = open(redis.url);
    await queues.work();
    await redis.stop('SIGKILL');
    await queues.isDegraded('cannot be reached');
    await Promise.all(Array.from({ length: 1_000 }, queues.add));
    servers.push(await startRedis(program, folder, redis.port));
    await queues.isHealthy();
    await queues.work();
    const stats = await askRedis(redis.port, 'INFO commandstats');
    const scripts = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].map(([, calls]) => Number(calls));
    expect(scripts.reduce((sum, calls) => sum + calls, 0)).toBeLessThan(500);
  });

  test('close while Redis is unavailable from the start, and after it is lost', async () => {
    const unavailable = open('redis://127.0.0.1:1');
    await unavailable.isDegraded('cannot be reached');
    const redis = await newRedis();
    const lost = open(redis.url);
    await lost.work();
    await redis.stop('SIGKILL');
    await lost.isDegraded('cannot be reached');
    expect(await Promise.all([unavailable.close(), lost.close()])).toEqual(['closed', 'closed']);
  });

  test('refuse at start a cluster, and a Redis that evicts jobs', async () => {
    const cluster = await newRedis({ 'cluster-enabled': 'yes', databases: 1 });
    await expect(prepare(cluster.url)).rejects.toThrow('REDIS_URL names a Redis Cluster');
    const evicting = await newRedis({ 'maxmemory-policy': 'allkeys-lru' });
    await expect(prepare(evicting.url)).rejects.toThrow('set it to noeviction');
  });
});
