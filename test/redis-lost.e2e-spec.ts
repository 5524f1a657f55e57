import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findRedisServer, type RedisServer, startRedis } from '../harness/redis-server.js';
import type { Service } from '../harness/service.js';
import { startTcpProxy } from '../harness/tcp-proxy.js';
import { until } from '../harness/until.js';
import { WebhookSender } from '../harness/webhook-sender.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { holdEveryKind } from './support/held-work.js';
import { type Mirror, useMirrors } from './support/service.js';

/** Milliseconds for which Redis is away. */
const AWAY_MS = [300, 1_000, 20_000];

const newMirror = useMirrors();
const redisIn = (folder: string, port = 0) => startRedis(findRedisServer() ?? '', folder, port);

function newFolder(name: string): string {
  const folder = path.join(process.env.TEST_FOLDER ?? '', `${name}-${process.pid}`);
  mkdirSync(folder);
  return folder;
}

const providers = (name: string, count: number) =>
  ['externalId,email,firstName,lastName']
    .concat(Array.from({ length: count }, (_, n) => `${name}-${n},${name}-${n}@example.org,Pia,N${n}`))
    .join('\n');

/** Gives the workers something to do: an import with its people, and a delivery. */
async function work({ url, ...service }: Service, name: string): Promise<string> {
  const content = providers(name, 20);
  const { id } = await service.startImport('kind=providers', [{ name: 'providers.csv', type: 'text/csv', content }]);
  const sender = new WebhookSender(() => WEBHOOK_SECRET, [Number(new URL(url).port)], new SeededRandom(1));
  const event = JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: `session-${name}`, providerUserId: 'p-1' });
  expect((await sender.deliver(event)).acknowledged).toBe(true);
  sender.close();
  return id;
}

const answersAtOnce = async (service: Service) => expect((await fetch(`${service.url}/health/live`)).status).toBe(200);

async function completes(mirror: Mirror, service: Service, name: string, id: string): Promise<void> {
  const { state, counts } = await service.importEnded(id);
  expect([state, counts.created]).toEqual(['completed', 20]);
  await until('the delivery was handled', async () => {
    const { status } = await service.call('GET', `/v1/sessions/session-${name}`);
    return status === 200;
  });
  expect(mirror.simulator.state.users.duplicates()).toEqual({ partnerUserIds: [], emails: [] });
}

const withRedis = process.env.TEST_REDIS_URL ? describe : describe.skip;
withRedis('a process whose Redis', () => {
  let redis: RedisServer;
  afterEach(() => redis.stop('SIGKILL'));

  test('dies in the middle of each kind of work answers throughout, goes on, and stops when it is asked to', async () => {
    const folder = newFolder('redis-killed');
    redis = await redisIn(folder);
    const mirror = await newMirror({
      platform: { stepMs: 0, processingEvents: false, webhookSecret: WEBHOOK_SECRET },
      env: { REDIS_URL: redis.url, PLATFORM_TIMEOUT_SECONDS: '60' },
    });
    const service = await mirror.start();
    mirror.simulator.state.settings.webhookUrl = `${service.url}/webhooks/platform`;
    const body = { email: 'therapist@example.org', firstName: 'Pia', lastName: 'Ruiz' };
    await until('the provider is mirrored', async () => {
      const { body: person } = await service.call('PUT', '/v1/providers/therapist', { body, wait: 5 });
      return person.sync.state === 'synced';
    });
    for (const [round, awayMs] of AWAY_MS.entries()) {
      const held = await holdEveryKind(mirror, service, `held-${round}`);
      const id = await work(service, `killed-${round}`);
      await redis.stop('SIGKILL');
      await answersAtOnce(service);
      if (round % 2 === 0) mirror.release(); // before it is back, and after it
      await delay(awayMs);
      await answersAtOnce(service);
      redis = await redisIn(folder, redis.port);
      mirror.release();
      await held.ended();
      await completes(mirror, service, `killed-${round}`, id);
    }
    expect(await service.kill('SIGTERM')).toBe(0);
  });

  test('falls silent on every connection goes on over new ones, and stops when it is asked to', async () => {
    redis = await redisIn(newFolder('redis-silent'));
    const proxy = await startTcpProxy(redis.port);
    const mirror = await newMirror({ env: { REDIS_URL: `redis://127.0.0.1:${proxy.port}` } });
    const service = await mirror.start();
    const first = await work(service, 'silent-0');
    proxy.silence();
    await completes(mirror, service, 'silent-0', first);
    await until('the queue is well again', async () => {
      const { body } = await service.call<{ checks: Record<string, { status: string }> }>('GET', '/health/ready');
      return body.checks.queue?.status === 'ok';
    });

    const second = await work(service, 'silent-1');
    await until('it is under way', () => mirror.usersOf('silent-1-0').length > 0);
    proxy.silence();
    await service.call('PUT', '/v1/providers/late', {
      body: { email: 'late@example.org', firstName: 'L', lastName: 'T' },
    });
    expect(await service.kill('SIGTERM')).toBe(0);

    const next = await mirror.start();
    await completes(mirror, next, 'silent-1', second);
    expect(await next.kill('SIGTERM')).toBe(0);
    await proxy.close();
  });
});
