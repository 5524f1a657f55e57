import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { PushReceiver } from '../harness/push-receiver.js';
import { headersOf, newSecret } from '../src/subscriptions/push/message.js';
import { announce } from './announce.js';
import { type BenchRow, percentile } from './bench-row.js';
import { withScratchPostgres } from './scratch-postgres.js';
import { startService } from './service-process.js';

const KEY = randomBytes(24).toString('hex');
const SECRET = randomBytes(24).toString('hex');
/** Pending events at the start of the throughput measurement. */
const WAITING = 2_000;
const PER_SECOND = 50;
/** Events per webhook, which announces notes of an unknown session. */
const PER_WEBHOOK = 2;
/** Warm-up events before the lag is measured: code is compiled, connections are opened. */
const WARM_UP = 200;
const MEASURED = 1_000;
/** How long to wait for the last event, in milliseconds. */
const LAST_MS = 60_000;

/**
 * Events per second that are pushed to an endpoint that answers immediately; and at 50 events per second, the time from an
 * event until the endpoint has it. The platform's webhooks cause these events.
 */
export async function benchPush(): Promise<BenchRow[]> {
  return withScratchPostgres(async (url) => {
    const service = await startService({ ADMIN_API_KEY: KEY, DATABASE_URL: url, PLATFORM_WEBHOOK_SECRET: SECRET });
    const receiver = await PushReceiver.start();
    const pool = new pg.Pool({ connectionString: url });
    try {
      const arrivals: { at: number; lagMs: number }[] = [];
      receiver.respond = (answer, { body }) => {
        const { timestamp } = JSON.parse(body) as { timestamp: string };
        arrivals.push({ at: performance.now(), lagMs: Date.now() - Date.parse(timestamp) });
        answer.writeHead(204).end();
      };
      await pool.query(
        `INSERT INTO feed_events (type, subject, data)
         SELECT 'session.created', 'sessions/s-' || n, '{}' FROM generate_series(1, $1::int) AS n`,
        [WARM_UP + WAITING],
      );
      await subscribe(service.url, receiver.url);
      await arrived(arrivals, WARM_UP + WAITING);
      const waited = arrivals.slice(WARM_UP).map(({ at }) => at);
      const perSecond = ((waited.length - 1) * 1_000) / ((waited.at(-1) ?? 0) - (waited[0] ?? 0));
      const ratio = perSecond / (await bareTrips(pool, receiver.url));
      arrivals.length = 0;
      const begun = performance.now();
      const announced: Promise<void>[] = [];
      for (let at = 0; at < WARM_UP + MEASURED; at += PER_WEBHOOK) {
        await delay(Math.max(0, begun + (at * 1_000) / PER_SECOND - performance.now()));
        announced.push(announce(service.url, SECRET));
      }
      await Promise.all(announced);
      await arrived(arrivals, WARM_UP + MEASURED);
      const lags = arrivals.slice(WARM_UP).map(({ lagMs }) => lagMs);
      const [p50, p99] = [percentile(lags, 0.5), percentile(lags, 0.99)];
      return [
        { name: 'events pushed to one endpoint', value: perSecond, unit: '/s' },
        { name: '… compared with bare round trips', value: ratio, unit: '×', target: '≥ 0.4', ok: ratio >= 0.4 },
        { name: `push lag at ${PER_SECOND} events per second, p50`, value: p50, unit: 'ms' },
        {
          name: `push lag at ${PER_SECOND} events per second, p99`,
          value: p99,
          unit: 'ms',
          target: '< 300',
          ok: p99 < 300,
        },
      ];
    } finally {
      await receiver.close();
      await pool.end();
      await service.stop();
    }
  });
}

/**
 * The floor: signed messages of the same size, one after the other, with one commit each.
 *
 * @returns messages per second
 */
async function bareTrips(pool: pg.Pool, url: string): Promise<number> {
  const secret = newSecret(randomBytes(32));
  const agent = new http.Agent({ keepAlive: true });
  await pool.query('CREATE TABLE bare_trips (position bigint); INSERT INTO bare_trips VALUES (0)');
  const trip = async (position: number): Promise<void> => {
    const timestamp = new Date().toISOString();
    const body = JSON.stringify({ type: 'session.created', timestamp, data: { subject: `sessions/s-${position}` } });
    const headers = {
      'content-type': 'application/json',
      ...headersOf({ id: `1-${position}`, body }, [secret], new Date()),
    };
    const request = http.request(url, { method: 'POST', agent, headers }).end(body);
    const [answer] = (await once(request, 'response')) as [http.IncomingMessage];
    await once(answer.resume(), 'close');
    await pool.query('UPDATE bare_trips SET position = $1', [position]);
  };
  for (let position = 0; position < WARM_UP; position += 1) await trip(position);
  const begun = performance.now();
  for (let position = 0; position < MEASURED; position += 1) await trip(position);
  agent.destroy();
  return (MEASURED * 1_000) / (performance.now() - begun);
}

async function subscribe(url: string, endpoint: string): Promise<void> {
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ url: endpoint, after: '0' });
  const response = await fetch(`${url}/v1/subscriptions`, { method: 'POST', headers, body });
  if (response.status !== 201) throw new Error(`POST /v1/subscriptions returned ${response.status}.`);
}

/** @throws {Error} if they are late */
async function arrived(events: readonly unknown[], count: number): Promise<void> {
  const end = performance.now() + LAST_MS;
  while (events.length < count && performance.now() < end) await delay(20);
  if (events.length < count) throw new Error(`${events.length} of ${count} events arrived.`);
}
