import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startEmbeddedPostgres } from '../demo/embedded-postgres/embedded-postgres.js';
import { findRedisServer, startRedis } from '../harness/redis-server.js';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../simulator/app.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { takeStep } from '../simulator/sessions/session-run.js';
import { announce } from './announce.js';
import { type BenchRow, percentile } from './bench-row.js';
import { cpuSeconds } from './cpu-seconds.js';
import { startService } from './service-process.js';

const EVENTS_PER_SECOND = 20;
/** Warm-up events before the measurement: code is compiled, connections are opened. */
const WARM_UP = 200;
const MEASURED = 600;
/** How long to wait for the last notes. */
const LAST_MS = 30_000;
const KEY = randomBytes(24).toString('hex');
const SECRET = randomBytes(24).toString('hex');
const TEMPLATE = '8bc81bb8-ff09-450a-8512-e7334b3fee7d';

interface FeedPage {
  items: { cursor: string; type: string; data: { sessionId: string } }[];
}

/**
 * The time from the webhook that announces notes until a waiting reader of the feed gets the event that they are stored.
 * Each webhook is the first one of another session. Once with the queues on PostgreSQL, and once on Redis, if there is one.
 */
export async function benchNoteLag(): Promise<BenchRow[]> {
  const redisServer = findRedisServer();
  return [...(await measured('postgres')), ...(redisServer ? await measured('redis', redisServer) : [])];
}

async function measured(queue: string, redisServer?: string): Promise<BenchRow[]> {
  const folder = await mkdtemp(path.join(tmpdir(), 'notebridge-bench-'));
  const postgres = await startEmbeddedPostgres(folder);
  const redis = redisServer ? await startRedis(redisServer, folder) : undefined;
  const simulator = await buildSimulator({ settings: { webhookDropRate: 1 } });
  const service = await startService({
    PLATFORM_BASE_URL: simulator.url,
    PLATFORM_API_KEY: DEFAULT_API_KEY,
    PLATFORM_CONTRACT: 'simulator/contract.json',
    PLATFORM_WEBHOOK_SECRET: SECRET,
    ADMIN_API_KEY: KEY,
    DATABASE_URL: postgres.url,
    REDIS_URL: redis?.url ?? '',
  });
  const pid = service.child.pid ?? 0;
  const reading = new AbortController();
  try {
    const sentAt = new Map<string, number>();
    const lags = new Map<string, number>();
    const reader = readFeed(service.url, reading.signal, (sessionId) => {
      const sent = sentAt.get(sessionId);
      if (sent !== undefined && !lags.has(sessionId)) lags.set(sessionId, performance.now() - sent);
    });
    const ids = sessionsWithNotes(simulator, WARM_UP + MEASURED);
    const begun = performance.now();
    let usedBefore = 0;
    for (const [at, sessionId] of ids.entries()) {
      await delay(Math.max(0, begun + (at * 1_000) / EVENTS_PER_SECOND - performance.now()));
      if (at === WARM_UP) usedBefore = await cpuSeconds(pid);
      sentAt.set(sessionId, performance.now());
      void announce(service.url, SECRET, sessionId);
    }
    const end = performance.now() + LAST_MS;
    while (lags.size < ids.length && performance.now() < end) await delay(50);
    const cpuMs = (1_000 * ((await cpuSeconds(pid)) - usedBefore)) / MEASURED;
    reading.abort();
    await reader;
    const found = ids.slice(WARM_UP).map((id) => lags.get(id) ?? Number.POSITIVE_INFINITY);
    const [p50, p99] = [percentile(found, 0.5), percentile(found, 0.99)];
    return [
      { name: `${queue}: event to note in the feed, p50`, value: p50, unit: 'ms', target: '< 150', ok: p50 < 150 },
      { name: `${queue}: event to note in the feed, p99`, value: p99, unit: 'ms', target: '< 700', ok: p99 < 700 },
      // A busy machine is late because it lacks CPU, so the output shows what was needed.
      { name: `${queue}: CPU of the service for each session, and its reader`, value: cpuMs, unit: 'ms' },
    ];
  } finally {
    reading.abort();
    await service.stop();
    await simulator.close();
    await redis?.stop();
    await postgres.release();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Creates sessions on the platform that are Done, with one document. @returns the platform's ids */
function sessionsWithNotes({ state }: Simulator, count: number): string[] {
  return Array.from({ length: count }, () => {
    const session = createSession(state, {
      providerUserId: 'provider',
      clientUserIds: [],
      noteTemplateIds: [TEMPLATE],
      input: { kind: 'text', text: 'Slept better.' },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: undefined,
    });
    while (session.nextStep) takeStep(state, session);
    return session.sessionId;
  });
}

/** Reads the feed by long polling. @param onNotes called with the platform's id of each session whose notes are ready */
async function readFeed(url: string, signal: AbortSignal, onNotes: (sessionId: string) => void): Promise<void> {
  let after = '0';
  while (!signal.aborted) {
    const headers = { authorization: `Bearer ${KEY}`, prefer: 'wait=20' };
    const response = await fetch(`${url}/v1/events?limit=200&after=${after}`, { headers, signal }).catch(
      () => undefined,
    );
    if (!response?.ok) continue;
    const { items } = (await response.json()) as FeedPage;
    for (const { type, data } of items) if (type === 'session.notes-ready') onNotes(data.sessionId);
    after = items.at(-1)?.cursor ?? after;
  }
}
