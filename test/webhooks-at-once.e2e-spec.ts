import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../harness/until.js';
import { freshDatabase, type TestDatabase } from './support/databases.js';
import { deliver, sessionEvent, signed } from './support/webhook-requests.js';
import { startWebhooks, type WebhooksApp } from './support/webhooks-app.js';

/** Milliseconds between two statements of a handler that is held: its transaction must not count as idle. */
const HELD_MS = 50;

describe('two workers at one inbox', () => {
  let database: TestDatabase;
  let workers: WebhooksApp[];
  let isHeld = false;

  beforeAll(async () => {
    database = await freshDatabase();
    workers = [await startWebhooks(database.url), await startWebhooks(database.url)];
  });

  beforeEach(() => database.sql.query('TRUNCATE webhook_deliveries'));

  // A worker that closes waits for what is held.
  afterEach(() => {
    isHeld = false;
  });

  afterAll(async () => {
    for (const worker of workers) await worker.close();
    await database.drop();
  });

  const script = (handle: WebhooksApp['handler']['script']) => {
    for (const { handler } of workers) handler.script = handle;
  };
  const send = async (session: string, eventType: string) => {
    const answer = await deliver(workers[0] as WebhooksApp, signed(sessionEvent(session, eventType)));
    expect(answer.status).toBe(204);
  };
  const inbox = async () =>
    (await database.sql.query('SELECT subject, state, attempts FROM webhook_deliveries ORDER BY id')).rows;

  test('what is about one session is worked on by one of them at a time; the other goes on with what is not, and counts no attempt', async () => {
    isHeld = true;
    let underWay = 0;
    let mostUnderWay = 0;
    script(async ({ body }, tx) => {
      if (body.sessionId !== 'busy') return 'processed';
      mostUnderWay = Math.max(mostUnderWay, ++underWay);
      for (; isHeld; await delay(HELD_MS)) await tx.query('SELECT 1');
      underWay -= 1;
      return 'processed';
    });
    await send('busy', 'SESSION_CREATED');
    await until('one works on it', () => underWay === 1);
    await send('busy', 'SESSION_PROCESSING_STARTED');
    await send('free', 'SESSION_CREATED');
    // The other worker takes the older delivery first, or both.
    await until('the other goes on', async () => (await inbox())[2]?.state === 'processed');
    expect(await inbox()).toEqual([
      { subject: null, state: 'received', attempts: 0 },
      { subject: null, state: 'received', attempts: 0 },
      { subject: 'free', state: 'processed', attempts: 0 },
    ]);
    isHeld = false;
    await until('all is processed', async () => (await inbox()).every(({ state }) => state === 'processed'));
    expect((await inbox()).map(({ attempts }) => attempts)).toEqual([0, 0, 0]);
    expect(mostUnderWay).toBe(1);
    await until('no claim is left', async () => {
      return (await database.sql.query('SELECT 1 FROM webhook_claims')).rowCount === 0;
    });
  });

  test('a batch that takes more than a second commits what it has done: others wait for what it has locked', async () => {
    const transactions = new Set<string>();
    script(async (_event, tx) => {
      const { rows } = await tx.query<{ id: string }>('SELECT pg_current_xact_id()::text AS id, pg_sleep(1.1)');
      transactions.add(rows[0]?.id ?? '');
      return 'processed';
    });
    const claims = await database.sql.connect();
    await claims.query('BEGIN; LOCK TABLE webhook_claims');
    const sessions = ['a', 'b', 'c', 'd', 'e'];
    for (const session of sessions) await send(session, 'SESSION_CREATED');
    await claims.query('COMMIT');
    claims.release();
    await until('all is processed', async () => (await inbox()).every(({ state }) => state === 'processed'));
    // One that a busy machine interrupts is handled once more.
    expect(transactions.size).toBeGreaterThanOrEqual(sessions.length);
  });
});
