import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { findRedisServer, startRedis } from '../harness/redis-server.js';
import { until } from '../harness/until.js';
import { useMirrors } from './support/service.js';

/** Makes a queue whose store is away, and listens to it too late: after the connection was refused. */
const LATE_LISTENER = `
  const { BoundedQueue } = require('./dist/src/queue/backend/bounded.js');
  new BoundedQueue('away', { connection: { url: 'redis://127.0.0.1:1' } });
  setTimeout(() => process.exit(), 300);
`;

/** So long a shutdown waits for a last call: one that a stalled machine makes late is no fault. */
const PATIENT = { PLATFORM_TIMEOUT_SECONDS: '60' };

interface Report {
  status: string;
  checks: Record<string, { status: string; reason?: string }>;
}

describe('while the store of the queue is away from the start', () => {
  const newMirror = useMirrors();

  it('health says so before anybody notifies, people are mirrored by the poller, and the service stops in time', async () => {
    const mirror = await newMirror({ env: { REDIS_URL: 'redis://127.0.0.1:1', ...PATIENT } });
    const service = await mirror.start();
    const health = await until('the service is ready without it', async () => {
      const { status, body } = await service.call<Report>('GET', '/health/ready');
      const isTold = status === 200 && body.status === 'degraded' && body.checks.queue?.status === 'degraded';
      return isTold ? body : undefined;
    });
    expect(health.checks.queue?.reason).toContain('REDIS_URL');

    const body = { email: 'ada@example.org', firstName: 'Ada', lastName: 'Osei' };
    const { body: person } = await service.call('PUT', '/v1/providers/p-1', { body, wait: 60 });
    expect(person.sync.state).toBe('synced');

    // One that is not done in time leaves with 1.
    expect(await service.kill('SIGTERM')).toBe(0);
    const lines = service.output().trim().split('\n');
    expect(lines.filter((line) => !line.startsWith('{'))).toEqual([]);
    // Whoever reads one of them knows which setting to look at; its value may hold a password.
    const warnings = lines.filter((line) => /"(warn|info)"/.test(line) && /redis|queue/i.test(line));
    expect(warnings.filter((line) => !line.includes('REDIS_URL'))).toEqual([]);
    expect(warnings.length).toBeGreaterThan(1);
    expect(service.output()).not.toContain('127.0.0.1:1"');
    expect(service.output()).not.toContain('redis://');
  });
});

describe('a queue whose store is away before anybody listens to it', () => {
  it('prints nothing: whole connections would stand in the log', async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['-e', LATE_LISTENER]);
    expect(stdout + stderr).toBe('');
  });
});

const withRedis = process.env.TEST_REDIS_URL ? describe : describe.skip;
withRedis('when Redis is lost', () => {
  const newMirror = useMirrors();

  it('the service says once that it is away and once that it is back, and stops in time without an error', async () => {
    const folder = path.join(process.env.TEST_FOLDER ?? '', `lost-${process.pid}`);
    mkdirSync(folder);
    const redis = await startRedis(findRedisServer() ?? '', folder);
    const mirror = await newMirror({ env: { REDIS_URL: redis.url, ...PATIENT } });
    const since = performance.now();
    const service = await mirror.start();
    await redis.stop('SIGKILL');
    const told = (words: string) => service.output().split(words).length - 1;
    await until('it notices', () => told('the store of the queues does not answer') > 0);
    const again = await startRedis(findRedisServer() ?? '', folder, redis.port);
    await until('it notices that it is back', () => told('the store of the queues answers again') > 0);
    await until('the queue is well', async () => {
      const { body } = await service.call<Report>('GET', '/health/ready');
      return body.checks.queue?.status === 'ok';
    });
    // Once more in each minute, where a stalled machine leaves it away for longer.
    const minutes = Math.floor((performance.now() - since) / 60_000);
    const lines = service.output().match(/"context":"(StoreWatch|QueueNotifier|Worker [\w-]+)"/g) ?? [];
    expect(lines.length).toBeGreaterThanOrEqual(2);
    expect(lines.length).toBeLessThanOrEqual(2 + 2 * minutes);

    await again.stop('SIGKILL');

    // One that is not done in time leaves with 1.
    expect(await service.kill('SIGTERM')).toBe(0);
    const all = service.output().trim().split('\n');
    expect(all.filter((line) => !/^\{"level":"(info|warn)"/.test(line))).toEqual([]);
  });
});
