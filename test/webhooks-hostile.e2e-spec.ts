import { createConnection, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type pg from 'pg';
import { median } from '../bench/bench-row.js';
import { until } from '../harness/until.js';
import { SeededRandom } from '../simulator/seeded-random.js';
import { signWebhook } from '../src/platform/webhook-signature.js';
import { WEBHOOK_SECRET } from './support/app.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { deliver, sessionEvent, signed, wholeAnswer } from './support/webhook-requests.js';
import { startWebhooks, type WebhooksApp } from './support/webhooks-app.js';

const SEED = Number(process.env.SEED);
const REQUESTS = 10_000;
const SOCKETS = 16;

/** Rounds that are measured each, and their requests: what is compiled or pooled once grows in one, a leak in all. */
const ROUNDS = 4;
const ROUND = 2_000;

/** Bytes of each further request that may stay: a body or its headers are more. */
const GROWTH = 200;

interface Parts {
  signature: string[];
  timestamp: string[];
  body: Buffer;
  headers: string[];
}

/** Ways to be not genuine; each changes at least one byte of what was signed or of the signature. */
const MUTATIONS: ((parts: Parts, pick: (below: number) => number) => void)[] = [
  ({ signature }, pick) => {
    const at = pick(64);
    const text = signature[0] ?? '';
    const digit = ((Number.parseInt(text[at] ?? '0', 16) + 1 + pick(15)) % 16).toString(16);
    signature[0] = text.slice(0, at) + digit + text.slice(at + 1);
  },
  ({ signature }, pick) => {
    signature[0] = (signature[0] ?? '').slice(0, pick(64));
  },
  ({ signature }, pick) => {
    signature[0] += '0123456789abcdef '.charAt(pick(16)).repeat(1 + pick(40));
  },
  (parts) => {
    parts.signature[0] = `f${(parts.signature[0] ?? '').slice(1, -1)}A`.toUpperCase();
  },
  ({ signature }) => void signature.push(signature[0] ?? ''),
  ({ signature }) => void signature.splice(0),
  ({ signature }, pick) => {
    signature[0] = ['\x80\xff'.repeat(32), 'sha256=', 'null', '[object Object]', '%00', ' '.repeat(64)][pick(6)] ?? '';
  },
  ({ timestamp }) => void timestamp.splice(0),
  ({ timestamp }) => void timestamp.push(timestamp[0] ?? ''),
  ({ timestamp }, pick) => {
    timestamp[0] = String(Number(timestamp[0]) + 1 + pick(1_000_000));
  },
  ({ timestamp }, pick) => {
    const odd = ['7', ':7', '1:27', '-1', '1e12', '0x17', 'now', '١٢٣', '9'.repeat(400), '1 7', '1.57'];
    timestamp[0] = odd[pick(odd.length)] ?? '';
  },
  ({ body }, pick) => {
    const at = pick(body.length);
    body[at] = (body[at] ?? 0) ^ (1 << pick(8));
  },
  (parts, pick) => {
    parts.body = parts.body.subarray(0, pick(parts.body.length));
  },
  (parts, pick) => {
    parts.body = Buffer.concat([parts.body, Buffer.alloc(1 + pick(2_000), pick(256))]);
  },
  ({ headers }, pick) => {
    headers.push(`content-encoding: ${['gzip', 'br', 'deflate', 'gzip, gzip', 'x', ''.padEnd(300, 'y')][pick(6)]}`);
  },
];

/** Two mutations may undo each other. */
const isGenuine = ({ signature, timestamp, body, headers }: Parts): boolean =>
  headers.length === 0 &&
  signature.length === 1 &&
  timestamp.length === 1 &&
  signature[0] === signWebhook(WEBHOOK_SECRET, timestamp[0] ?? '', body);

describe('a hostile sender', () => {
  let database: TestDatabase;
  let service: WebhooksApp;
  let sql: pg.Pool;

  beforeAll(async () => {
    database = await freshDatabase();
    service = await startWebhooks(database.url, { ROLES: 'api' });
    sql = database.sql;
  });

  afterAll(async () => {
    await service?.close();
    await database?.drop();
  });

  test(`${REQUESTS} mutated requests (seed ${SEED}): none is accepted, none is answered 5xx, and the memory is given back`, async () => {
    const random = new SeededRandom(SEED);
    const pick = (below: number) => random.below(below);
    const statuses = new Map<number, number>();
    const port = Number(new URL(service.url).port);
    const request = (): Buffer => {
      const parts: Parts = {
        signature: [],
        timestamp: [String(1_800_000_000_000 + pick(1_000_000))],
        body: Buffer.alloc(0),
        headers: [],
      };
      parts.body = Buffer.from(sessionEvent(`s-${pick(1_000_000)}`));
      parts.signature = [signWebhook(WEBHOOK_SECRET, parts.timestamp[0] ?? '', parts.body)];
      for (let more = 1 + pick(2); more > 0 || isGenuine(parts); more -= 1) {
        MUTATIONS[pick(MUTATIONS.length)]?.(parts, pick);
      }
      const lines = [
        'POST /webhooks/platform HTTP/1.1',
        `host: 127.0.0.1:${port}`,
        `content-length: ${parts.body.length}`,
        ...(pick(4) > 0 ? ['content-type: application/json'] : []),
        ...parts.signature.map((value) => `x-service-signature: ${value}`),
        ...parts.timestamp.map((value) => `x-service-timestamp: ${value}`),
        ...parts.headers,
      ];
      return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), parts.body]);
    };

    const run = async (count: number) => {
      let left = count;
      const one = async (): Promise<void> => {
        const socket = createConnection({ port, host: '127.0.0.1', noDelay: true });
        while (left > 0) {
          left -= 1;
          socket.write(request());
          const status = await answerOf(socket);
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
        socket.destroy();
      };
      await Promise.all(Array.from({ length: SOCKETS }, one));
    };

    await run(REQUESTS - ROUNDS * ROUND);
    const growth: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = await held();
      await run(ROUND);
      growth.push(((await held()) - before) / ROUND);
    }
    expect(Object.fromEntries(statuses)).toEqual({ 401: REQUESTS });
    expect((await sql.query('SELECT count(*)::int AS n FROM webhook_deliveries')).rows[0].n).toBe(0);
    await until('the ledger holds them all', async () => {
      const { rows } = await sql.query('SELECT sum(count)::int AS n, count(*)::int AS rows FROM webhook_rejections');
      return rows[0].n === REQUESTS && rows[0].rows < REQUESTS / 10;
    });
    expect(median(growth)).toBeLessThan(GROWTH);
  });

  test('what is no HTTP, or never ends, hurts nobody', async () => {
    const port = Number(new URL(service.url).port);
    const broken = [
      'POST /webhooks/platform HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello',
      'POST /webhooks/platform HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n',
      'POST /webhooks/platform HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      `POST /webhooks/platform HTTP/1.1\r\nhost: x\r\nx-service-signature: ${'a'.repeat(20_000)}\r\n\r\n`,
      `\x16\x03\x01${'\0'.repeat(200)}`,
    ];
    for (const text of broken) {
      const socket = createConnection({ port, host: '127.0.0.1' });
      const answer = wholeAnswer(socket);
      socket.write(Buffer.from(text, 'latin1'));
      expect(await answer).toMatch(/^HTTP\/1.1 4\d\d /);
    }
    const cut = createConnection({ port, host: '127.0.0.1' });
    cut.end('POST /webhooks/platform HTTP/1.1\r\nhost: x\r\ncontent-length: 500\r\n\r\nhalf');
    expect((await deliver(service, signed(sessionEvent('after')))).status).toBe(204);
  });

  test.each(['GET', 'PUT', 'DELETE'])('%s is no delivery', async (method) => {
    const { status, headers } = await fetch(`${service.url}/webhooks/platform`, { method });
    expect([status, headers.get('allow')]).toEqual([405, 'POST']);
  });
});

/** The status of the one answer that is under way on a socket. */
function answerOf(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    const read = (chunk: Buffer) => {
      text += chunk.toString('latin1');
      const end = text.indexOf('\r\n\r\n');
      if (end === -1) return;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (text.length < end + 4 + length) return;
      socket.off('data', read).off('error', reject).off('close', reject);
      resolve(Number(text.slice(9, 12)));
    };
    socket.on('data', read).once('error', reject).once('close', reject);
  });
}

/** Bytes that this process holds once all garbage is collected: what the closing of sockets frees needs a second time. */
async function held(): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let times = 0; times < 3; times += 1) {
    collect();
    await delay(20);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
