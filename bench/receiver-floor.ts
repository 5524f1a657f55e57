// The minimum cost of a receiver: Fastify and the signature, then with one INSERT per request, then with group commit.
// The row is that of the service's inbox, in a table with the same indexes; its body is not encrypted.
import { createHmac, timingSafeEqual } from 'node:crypto';
import fastify from 'fastify';
import pg from 'pg';

/** `hmac` stores nothing. */
export type Floor = 'hmac' | 'insert' | 'group';

const secret = process.env.SECRET ?? '';
const floor = process.env.FLOOR as Floor;

interface Row {
  signature: Buffer;
  body: Buffer;
  timestamp: string;
  subject: string;
  eventType: string;
}

const COLUMNS = 'bench_inbox (signature, body, sent_at, secret_index, subject, event_type)';

/** Minimal adaptive group commit: no deadline, no limit, no retry. */
function groupCommit(pool: pg.Pool): (row: Row) => Promise<void> {
  const waiting: { row: Row; done: () => void; failed: (error: unknown) => void }[] = [];
  let inFlight = 0;
  const flush = async () => {
    const group = waiting.splice(0, 500);
    inFlight += 1;
    try {
      await pool.query({
        name: 'group',
        text: `INSERT INTO ${COLUMNS} SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::smallint[], $5::text[], $6::text[])`,
        values: [
          group.map(({ row }) => row.signature),
          group.map(({ row }) => row.body),
          group.map(({ row }) => row.timestamp),
          group.map(() => 0),
          group.map(({ row }) => row.subject),
          group.map(({ row }) => row.eventType),
        ],
      });
      for (const { done } of group) done();
    } catch (error) {
      for (const { failed } of group) failed(error);
    }
    inFlight -= 1;
    if (waiting.length > 0) void flush();
  };
  return (row) =>
    new Promise((done, failed) => {
      waiting.push({ row, done, failed });
      if (inFlight < 2) void flush();
    });
}

function keeper(): (row: Row) => Promise<unknown> {
  if (floor === 'hmac') return async () => undefined;
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: floor === 'insert' ? 16 : 2 });
  if (floor === 'group') return groupCommit(pool);
  const text = `INSERT INTO ${COLUMNS} VALUES ($1, $2, $3, 0, $4, $5)`;
  return ({ signature, body, timestamp, subject, eventType }) =>
    pool.query({ name: 'insert', text, values: [signature, body, timestamp, subject, eventType] });
}

async function main(): Promise<void> {
  const keep = keeper();
  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.post('/webhooks/platform', (request, reply) => {
    const body = request.body as Buffer;
    const { 'x-service-signature': signature, 'x-service-timestamp': timestamp } = request.headers;
    const digest = createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest();
    const given = Buffer.from(String(signature), 'hex');
    if (given.length !== digest.length || !timingSafeEqual(given, digest)) return void reply.code(401).send();
    const { sessionId: subject, eventType } = JSON.parse(String(body)) as { sessionId: string; eventType: string };
    void keep({ signature: given, body, timestamp: String(timestamp), subject, eventType }).then(
      () => reply.code(204).send(),
      () => reply.code(503).send(),
    );
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
}

void main();
