import { PrismaService, type Tx } from '../../src/database/prisma.service.js';
import { Metrics } from '../../src/monitoring/metrics.js';
import { Decisions } from '../../src/operations/overview/decisions.js';
import type { ReplayResponse } from '../../src/webhooks/admin/deliveries.dto.js';
import { EventHandlers, type Handled, type InboxEvent } from '../../src/webhooks/process/event-handlers.js';
import { MAX_ATTEMPTS } from '../../src/webhooks/process/webhooks.processor.js';
import { deliver, sessionEvent, sessionOf, signed } from '../support/webhook-requests.js';
import { useWorld } from '../world/use-world.js';

interface Delivery {
  id: string;
  eventType: string | null;
  state: string;
  attempts: number;
  repeats: number;
  error: { code: string; message: string } | null;
}

const world = useWorld();

/** Handles every event with the test's own `script`. */
const handler = {
  seen: [] as InboxEvent[],
  script: async (_event: InboxEvent, _tx: Tx): Promise<Handled> => 'processed',
  handle(event: InboxEvent, tx: Tx) {
    this.seen.push(event);
    return this.script(event, tx);
  },
};

beforeAll(async () => {
  await world.sql('CREATE TABLE noted (session text PRIMARY KEY, times int NOT NULL, CHECK (session <> $$poison$$))');
  await world.sql('CREATE TABLE late (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)');
  await world.sql('INSERT INTO late VALUES (1)');
});

afterAll(() => world.sql('DROP TABLE noted, late'));

beforeEach(async () => {
  jest.spyOn(world.get(EventHandlers), 'of').mockReturnValue(handler);
  await world.sql('TRUNCATE noted');
  handler.seen = [];
  handler.script = async (event, tx) => {
    const session = sessionOf(event);
    await tx.$executeRaw`
      INSERT INTO noted VALUES (${session}, 1) ON CONFLICT (session) DO UPDATE SET times = noted.times + 1`;
    return 'processed';
  };
});

const send = async (init: RequestInit) => (await deliver(world, init)).status;
const api = async <T>(path: string, body?: unknown): Promise<{ status: number; json: T }> => {
  const method = body === undefined ? 'GET' : 'POST';
  const answer = await world.call<T>(method, `/v1/webhook-deliveries${path}`, { body });
  return { status: answer.status, json: answer.body };
};
const list = async (query = '') => (await api<{ items: Delivery[]; nextCursor: string | null }>(query)).json;
async function settled(state: string, count: number): Promise<void> {
  await world.settle();
  expect((await list(`?state=${state}&limit=200`)).items).toHaveLength(count);
}
const times = async (session: string): Promise<number> =>
  (await world.sql<{ times: number }>('SELECT times FROM noted WHERE session = $1', [session]))[0]?.times ?? 0;
/** Longer than any backoff. */
const hurry = () => world.advance('1 h');

test('both shapes of an event reach their handler', async () => {
  await send(signed(sessionEvent('s-1', 'SESSION_CREATED')));
  await send(signed('{"eventType":"COMPLIANCE_JOB_COMPLETED","payload":{"jobId":"j-1"}}'));
  await settled('processed', 2);
  expect(handler.seen.map(({ eventType }) => eventType).sort()).toEqual([
    'COMPLIANCE_JOB_COMPLETED',
    'SESSION_CREATED',
  ]);
  expect(handler.seen[0]?.receivedAt).toBeInstanceOf(Date);
});

test('a genuine delivery that is not understood degrades health until it is dismissed', async () => {
  const bodies = [
    'no json',
    '[]',
    '{"eventType":"Jane Roe"}',
    '{"eventType":"SESSION_CREATED"}',
    '{"eventType":"NEW_ONE"}',
  ];
  for (const body of bodies) expect(await send(signed(body))).toBe(204);
  await settled('not-understood', bodies.length);
  const { items } = await list();
  expect(items.map(({ eventType, error }) => [eventType, error?.code]).reverse()).toEqual([
    [null, 'not-json'],
    [null, 'not-an-object'],
    [null, 'unknown-event-type'],
    ['SESSION_CREATED', 'bad-field'],
    ['NEW_ONE', 'unknown-event-type'],
  ]);
  expect(handler.seen).toEqual([]);

  const health = () => world.get(Decisions).health();
  expect(await health()).toMatchObject({ status: 'degraded', facts: { 'delivery-not-understood': bodies.length } });
  const [first, ...others] = items;
  for (const { id } of others) {
    const { status, json } = await api<Delivery>(`/${id}/dismiss`, {});
    expect([status, json]).toMatchObject([200, { state: 'ignored', error: { code: expect.any(String) } }]);
  }
  expect((await api<Delivery>(`/${others[0]?.id}/dismiss`, {})).status).toBe(200);
  expect(await health()).toMatchObject({ status: 'degraded', facts: { 'delivery-not-understood': 1 } });
  // A replay reads it again, as after an upgrade.
  expect((await api(`/${first?.id}/replay`, {})).status).toBe(202);
  await settled('not-understood', 1);
  expect((await api(`/${first?.id}/dismiss`, {})).status).toBe(200);
  expect((await health()).status).toBe('ok');

  await send(signed(sessionEvent('s')));
  await settled('processed', 1);
  const [processed] = (await list('?state=processed')).items;
  expect(await api(`/${processed?.id}/dismiss`, {})).toMatchObject({
    status: 409,
    json: { type: 'urn:notebridge:problem:not-waiting' },
  });
  expect((await api('/999999/dismiss', {})).status).toBe(404);
});

test('a replay takes exactly the counted deliveries, on the connections for long statements', async () => {
  for (const name of ['one', 'two', 'three']) await send(signed(sessionEvent(name)));
  await settled('processed', 3);
  const { json: counted } = await api<ReplayResponse>('/replay', { state: 'processed', dryRun: true });
  const transaction = jest.spyOn(world.get(PrismaService), 'transaction');
  const answer = await api<ReplayResponse>('/replay', { state: 'processed', plan: counted.plan });
  expect(transaction.mock.calls.map(([, size]) => size)).toContain('bulk');
  expect(counted.count).toBe(3);
  expect(answer).toMatchObject({ status: 200, json: { count: 3 } });
  await settled('processed', 3);
  expect(handler.seen).toHaveLength(6);
});

test('an unusual optional field does not lose its event', async () => {
  const odd = { providerUserId: {}, partnerAppointmentId: 17, aiNotesEnabled: 'yes' };
  await send(signed(JSON.stringify({ eventType: 'SESSION_CREATED', sessionId: 'odd', ...odd })));
  await settled('processed', 1);
  const ignored = { providerUserId: null, partnerAppointmentId: null, aiNotesEnabled: null };
  expect(handler.seen).toMatchObject([{ eventType: 'SESSION_CREATED', sessionId: 'odd', ...ignored }]);
});

test('a delivery whose data key is missing waits for the key without a limit', async () => {
  await send(signed(sessionEvent('sealed')));
  await settled('processed', 1);
  // As if encrypted with a key that DATA_KEYS lacks: the key id comes first.
  await world.sql(
    `UPDATE webhook_deliveries SET state = 'received', due_at = now(), attempts = $1,
       body = overlay(body placing 'k9'::bytea from position('k1'::bytea in body))`,
    [MAX_ATTEMPTS - 1],
  );
  await settled('failed', 1);
  const [waiting] = (await list('?state=failed')).items;
  expect(waiting).toMatchObject({ attempts: MAX_ATTEMPTS - 1, error: { code: 'sealed' } });
});

test('a delivery that waits is handled again each second, and counts no attempt', async () => {
  const note = handler.script;
  handler.script = async () => 'waiting';
  await send(signed(sessionEvent('early')));
  for (let seconds = 0; seconds < 3; seconds += 1) {
    await world.settle();
    expect(handler.seen).toHaveLength(seconds + 1);
    expect((await list()).items).toMatchObject([{ state: 'received', attempts: 0, error: { code: 'waiting' } }]);
    await world.advance('999 ms');
    await world.settle();
  }
  expect(await times('early')).toBe(0);
  handler.script = note;
  await world.advance('1 s');
  await settled('processed', 1);
  expect(await times('early')).toBe(1);
});

test('a lost deadlock runs the handler again, and counts no attempt', async () => {
  const note = handler.script;
  handler.script = async (event, tx) => {
    if (handler.seen.length === 1) throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
    return note(event, tx);
  };
  await send(signed(sessionEvent('a')));
  await settled('processed', 1);
  expect(handler.seen).toHaveLength(2);
  expect((await list()).items).toMatchObject([{ attempts: 0 }]);
});

test('a body of 200 KB is processed', async () => {
  const body = JSON.stringify({ ...JSON.parse(sessionEvent('large')), padding: 'x'.repeat(200_000) });
  expect(await send(signed(body))).toBe(204);
  await settled('processed', 1);
  expect(await times('large')).toBeGreaterThan(0);
});

test('an exact repeat after processing still causes another look', async () => {
  const init = signed(sessionEvent('again'));
  await send(init);
  await settled('processed', 1);
  const before = { times: await times('again'), repeats: (await list()).items[0]?.repeats ?? 0 };
  expect(before.times).toBeGreaterThan(0);
  await send(init);
  await settled('processed', 1);
  expect(await times('again')).toBeGreaterThan(before.times);
  const { items } = await list();
  expect(items).toHaveLength(1);
  expect(items[0]?.repeats).toBeGreaterThan(before.repeats);
});

test('an exact repeat during processing is acknowledged and handled afterwards', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const note = handler.script;
  const started = new Promise<void>((resolve) => {
    handler.script = async (event, tx) => {
      resolve();
      await released;
      return note(event, tx);
    };
  });
  const init = signed(sessionEvent('busy'));
  await send(init);
  const working = world.settle();
  await started;
  expect(await send(init)).toBe(204);
  expect(await times('busy')).toBe(0);
  release();
  await working;
  await world.settle();
  expect(await times('busy')).toBe(2);
});

test('a poisoned delivery is retried until it is dead, and never blocks other sessions', async () => {
  const sessions = Array.from({ length: 30 }, (_, index) => (index === 7 ? 'poison' : `s-${index}`));
  await Promise.all(sessions.map((session) => send(signed(sessionEvent(session)))));
  await settled('processed', 29);
  for (let attempt = 1; attempt < MAX_ATTEMPTS; attempt += 1) {
    expect((await list('?state=failed')).items).toMatchObject([{ attempts: attempt }]);
    await hurry();
    await world.settle();
  }
  await settled('dead', 1);
  expect((await list('?state=dead')).items).toMatchObject([
    { attempts: MAX_ATTEMPTS, error: { code: 'database-23514' } },
  ]);
  const gauge = world.get(Metrics).registry.getSingleMetricAsString('notebridge_webhook_inbox_dead');
  expect(await gauge).toContain('notebridge_webhook_inbox_dead 1');
  expect(await times('poison')).toBe(0);
});

test('a delivery that breaks the commit or the connection fails alone', async () => {
  const note = handler.script;
  handler.script = async (event, tx) => {
    if (sessionOf(event) === 'at-commit') await tx.$executeRaw`INSERT INTO late VALUES (1)`;
    if (sessionOf(event) === 'kills') await tx.$queryRaw`SELECT pg_terminate_backend(pg_backend_pid())`;
    return note(event, tx);
  };
  const sessions = ['a', 'at-commit', 'b', 'kills', 'c'];
  await Promise.all(sessions.map((session) => send(signed(sessionEvent(session)))));
  await settled('processed', 3);
  await settled('failed', 2);
  expect((await list('?state=failed')).items.map(({ error }) => error?.code).sort()).toEqual([
    'database-23505',
    'database-57P01',
  ]);
  for (const session of ['a', 'b', 'c']) expect(await times(session)).toBeGreaterThan(0);
});

test('a delivery whose job was lost is found within a second', async () => {
  await send(signed(sessionEvent('first')));
  await settled('processed', 1);
  const before = await times('first');
  await world.sql("UPDATE webhook_deliveries SET state = 'received', due_at = now()");
  await world.settle();
  expect(await times('first')).toBeGreaterThan(before);
});

test('one delivery can be replayed in any state', async () => {
  handler.script = async () => {
    throw new RangeError('Jane Roe');
  };
  await send(signed(sessionEvent('s')));
  await settled('failed', 1);
  const [failed] = (await list('?state=failed')).items;
  expect(failed).toMatchObject({ attempts: expect.any(Number), error: { code: 'RangeError' } });
  expect(JSON.stringify(failed)).not.toContain('Jane');
  handler.script = async () => 'processed';
  const answer = await api<Delivery>(`/${failed?.id}/replay`, {});
  expect([answer.status, answer.json.state]).toEqual([202, 'received']);
  await settled('processed', 1);
  expect((await api<Delivery>(`/${failed?.id}`)).json).toMatchObject({ state: 'processed', error: null });
  for (const id of ['0', '999999', 'x', '9'.repeat(30)]) {
    expect((await api(`/${id}`)).status).toBe(404);
    expect((await api(`/${id}/replay`, {})).status).toBe(404);
  }
});

test('a selection is counted first, then exactly that many are replayed', async () => {
  for (let i = 0; i < 5; i += 1)
    await send(signed('{"eventType":"NEW_ONE"}', { timestamp: String(1_700_000_000_000 + i) }));
  await send(signed('no json'));
  await settled('not-understood', 6);

  const selection = { state: 'not-understood' };
  const { json: counted } = await api<{ count: number; plan: object }>('/replay', { ...selection, dryRun: true });
  expect(counted.count).toBe(6);
  expect(handler.seen).toEqual([]);

  await send(signed('[]'));
  await settled('not-understood', 7);
  const replayed = await api<{ count: number }>('/replay', { ...selection, plan: counted.plan });
  expect([replayed.status, replayed.json.count]).toEqual([200, 6]);
  await settled('not-understood', 7);

  await world.sql("UPDATE webhook_deliveries SET state = 'dead' WHERE id = (SELECT min(id) FROM webhook_deliveries)");
  const stale = await api<{ type: string; count: number }>('/replay', { ...selection, plan: counted.plan });
  expect([stale.status, stale.json.type, stale.json.count]).toEqual([409, 'urn:notebridge:problem:plan-changed', 5]);

  const inbox = () => world.sql('SELECT id, state, due_at, processed_at FROM webhook_deliveries ORDER BY id');
  const before = await inbox();
  const fewer = await api<{ count: number }>('/replay', { ...selection, plan: { ...counted.plan, count: 4 } });
  expect([fewer.status, fewer.json.count]).toEqual([409, 5]);
  expect(await inbox()).toEqual(before);
});

test('a selection can be narrowed by type and time, and needs its count', async () => {
  await send(signed(sessionEvent('s', 'SESSION_CREATED')));
  await send(signed(sessionEvent('s', 'SESSION_PROCESSING_FAILED')));
  await settled('processed', 2);
  const count = async (more: object) =>
    (await api<{ count: number }>('/replay', { state: 'processed', dryRun: true, ...more })).json.count;
  expect(await count({ eventType: 'SESSION_CREATED' })).toBe(1);
  expect(await count({ receivedBefore: '2020-01-01T00:00:00Z' })).toBe(0);
  expect(await count({ receivedSince: '2020-01-01T00:00:00Z' })).toBe(2);
  expect((await api('/replay', { state: 'processed' })).status).toBe(400);
  expect((await api('/replay', { state: 'processed', receivedBefore: '7', dryRun: true })).status).toBe(400);
  expect((await api('/replay', { dryRun: true })).status).toBe(400);
});

test('the list is paged, newest first', async () => {
  for (let i = 0; i < 5; i += 1) await send(signed('[]', { timestamp: String(1_700_000_000_000 + i) }));
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await list(`?limit=2${cursor && `&cursor=${cursor}`}`);
    seen.push(...page.items.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  expect(seen).toHaveLength(5);
  expect(seen).toEqual([...seen].sort((a, b) => Number(b) - Number(a)));
});
