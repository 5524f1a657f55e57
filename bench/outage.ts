import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { startTcpProxy } from '../harness/tcp-proxy.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import type { BenchRow } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { startService } from './service-process.js';

const SECRET = randomBytes(24).toString('hex');

/** Deliveries of one row, sent at an even pace whether or not earlier ones were answered. */
const REQUESTS = 600;
const EVERY_MS = 10;

/** The delivery at which the database goes away; those that are under way then count too. */
const AWAY_AT = 100;

/** Within which a delivery that can't be kept is answered 503 (spec, Limits: the platform gives up after 5 s). */
const TARGET_MS = 2_000;

interface Answered {
  status: number;
  ms: number;
}

/** How long the receiver takes to answer at worst while its database is stopped (connections refused) or hangs. */
export async function benchOutage(): Promise<BenchRow[]> {
  return withScratchPostgres(async (databaseUrl) => {
    const url = new URL(databaseUrl);
    const proxy = await startTcpProxy(Number(url.port));
    url.port = String(proxy.port);
    const service = await startService({
      PLATFORM_WEBHOOK_SECRET: SECRET,
      DATABASE_URL: url.toString(),
      ROLES: 'api',
    });
    const agent = new Agent({ keepAlive: true });
    const port = Number(new URL(service.url).port);
    try {
      const measure = async (how: string, goAway: () => unknown): Promise<BenchRow> => {
        const answers = await sendWhile(agent, port, goAway);
        await proxy.restore();
        await untilKept(agent, port);
        return rowOf(how, answers);
      };
      await untilKept(agent, port);
      return [await measure('stopped', () => proxy.cut()), await measure('stuck', () => proxy.stall())];
    } finally {
      agent.destroy();
      await proxy.restore();
      await service.stop();
      await proxy.close();
    }
  });
}

async function sendWhile(agent: Agent, port: number, goAway: () => unknown): Promise<Answered[]> {
  const underWay: Promise<Answered>[] = [];
  const start = performance.now();
  for (let index = 0; index < REQUESTS; index += 1) {
    if (index === AWAY_AT) await goAway();
    const dueAt = start + index * EVERY_MS;
    await delay(Math.max(0, dueAt - performance.now()));
    underWay.push(post(agent, port));
  }
  return Promise.all(underWay);
}

function rowOf(how: string, answers: readonly Answered[]): BenchRow {
  const refused = answers.filter(({ status }) => status === 503).length;
  const strange = answers.find(({ status }) => status !== 204 && status !== 503);
  if (strange) throw new Error(`With PostgreSQL ${how} a delivery was answered ${strange.status}.`);
  if (refused < (REQUESTS - AWAY_AT) / 2) throw new Error(`With PostgreSQL ${how} only ${refused} were refused.`);
  const value = Math.max(...answers.map(({ ms }) => ms));
  return {
    name: `receiver, PostgreSQL ${how}: worst of ${REQUESTS} answers (${refused} were 503)`,
    value,
    unit: 'ms',
    target: `< ${TARGET_MS}`,
    ok: value < TARGET_MS,
  };
}

async function untilKept(agent: Agent, port: number): Promise<void> {
  while ((await post(agent, port)).status !== 204) await delay(100);
}

function post(agent: Agent, port: number): Promise<Answered> {
  const body = JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: randomBytes(8).toString('hex') });
  const timestamp = String(Date.now());
  const headers = {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-service-timestamp': timestamp,
    'x-service-signature': signWebhook(SECRET, timestamp, Buffer.from(body)),
  };
  const begun = performance.now();
  return new Promise((resolve, reject) => {
    const sending = request({ agent, host: '127.0.0.1', port, path: '/webhooks/platform', method: 'POST', headers });
    sending.once('response', (response) => {
      response.resume();
      response.once('end', () => resolve({ status: response.statusCode ?? 0, ms: performance.now() - begun }));
    });
    sending.once('error', reject);
    sending.end(body);
  });
}
