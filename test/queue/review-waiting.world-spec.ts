import { randomUUID } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { findRedisServer, startRedis } from '../../harness/redis-server.js';
import { Clock } from '../../src/config/clock.js';
import { prepareQueueStore } from '../../src/queue/backend/queue-store.js';
import { PostgresWorkStore } from '../../src/queue/work/postgres-store.js';
import { RedisWorkStore } from '../../src/queue/work/redis-store.js';
import { WorkQueue } from '../../src/queue/work/work-queue.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();
const envOf = (url: string) => ({ REDIS_URL: undefined, QUEUE_PREFIX: 'test', DATABASE_URL: url });

async function measure(name: string, store: PostgresWorkStore | RedisWorkStore) {
  const failures: string[] = [];
  const q = store.open('webhooks');
  const queue = new WorkQueue(q, { failed: (e: unknown) => failures.push(String(e)) });
  const odd = `${'"\'{}%:\n\\*é日😀'.repeat(60)}`.slice(0, 511);
  let oddAdded = await queue.add(odd);
  for (let tries = 0; !oddAdded && tries < 50; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    oddAdded = await queue.add(odd);
  }
  for (const n of [50, 500, 1_000, 2_000]) {
    const have = (await queue.waiting(5_000))?.size ?? -1;
    for (let i = Math.max(0, have); i < n; i += 1) await queue.add(randomUUID());
    const cpu = process.cpuUsage();
    const began = performance.now();
    const waiting = await queue.waiting(2_000);
    const used = process.cpuUsage(cpu);
    process.stderr.write(
      `${name} n=${n} had=${have} waiting=${waiting?.size} odd=${oddAdded}/${waiting?.has(odd)} ms=${Math.round(performance.now() - began)} cpu=${Math.round((used.user + used.system) / 1000)} failures=${failures.splice(0).slice(0, 2)}\n`,
    );
  }
  await q.close();
  await store.close();
}

test('postgres', async () => {
  await prepareQueueStore(envOf(world.database.url), world.database.url);
  await measure('postgres', new PostgresWorkStore(world.database.url, new Clock()));
}, 120_000);

test('redis', async () => {
  const redis = await startRedis(findRedisServer() ?? '', mkdtempSync('/tmp/review-redis-'));
  await measure('redis', new RedisWorkStore(redis.url, 'review', new Clock()));
  await (redis as { stop?: () => Promise<void> }).stop?.();
}, 60_000);
