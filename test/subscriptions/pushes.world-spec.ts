import { Webhook } from 'standardwebhooks';
import { PushReceiver, type Respond, SWITCH_PROTOCOL, status } from '../../harness/push-receiver.js';
import { SELF_SIGNED } from '../../harness/self-signed.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import { FeedReader } from '../../src/feed/feed-reader.js';
import type { Page } from '../../src/http/request/page.js';
import { useWorld } from '../world/use-world.js';
import { usePushes } from './pushed.js';

const world = useWorld();
const pushes = usePushes(world);

const cursors = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => `1-${from + at}`);

/** Types and reasons of the events about subscriptions. */
async function pauses(): Promise<unknown[]> {
  const { items } = (await world.call<Page<FeedEventResponse>>('GET', '/v1/events?types=subscription.paused')).body;
  return items.map(({ subject, data }) => [subject, data]);
}

test('sends each event once, in order, with its ids and a valid Standard Webhooks signature', async () => {
  const { secret } = await pushes.subscribe();
  await pushes.append(3);
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 3));
  const [first] = pushes.receiver.attempts;
  const { headers, body } = first as NonNullable<typeof first>;
  expect(JSON.parse(body)).toEqual({
    type: 'person.synced',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    data: { cursor: '1-1', subject: 'clients/c-1', externalId: 'c-1' },
  });
  expect(headers).toMatchObject({ 'content-type': 'application/json', 'webhook-id': '1-1' });
  const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  jest.useFakeTimers({ now: Number(headers['webhook-timestamp']) * 1_000, doNotFake: ['nextTick', 'setImmediate'] });
  try {
    const webhook = new Webhook(secret);
    expect(webhook.verify(body, signed)).toMatchObject({ type: 'person.synced' });
    expect(() => webhook.verify(body.replace('c-1', 'c-2'), signed)).toThrow('No matching signature found');
    jest.setSystemTime((Number(headers['webhook-timestamp']) + 301) * 1_000);
    expect(() => webhook.verify(body, signed)).toThrow('Message timestamp too old');
  } finally {
    jest.useRealTimers();
  }
});

test('only the chosen types are sent, and the subscription moves past the others', async () => {
  const { id } = await pushes.subscribe({ types: ['session.notes-ready'] });
  await pushes.append(2);
  await pushes.append(1, 'session.notes-ready');
  await pushes.append(2);
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-3']);
  expect(await pushes.read(id)).toMatchObject({ cursor: '1-5', behind: 0, next: null, state: 'active' });
});

test('a subscription starts where it was asked to: with new events by default', async () => {
  await pushes.append(2);
  await pushes.subscribe();
  await pushes.append(1);
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-3']);
  await pushes.subscribe({ after: '0' });
  await world.settle();
  expect(pushes.receiver.taken.slice(1)).toEqual(cursors(1, 3));
  await pushes.subscribe({ after: '1-2' });
  await world.settle();
  expect(pushes.receiver.taken.slice(4)).toEqual(['1-3']);
});

test('retries a failed event after 5 s, 30 s, 2 min, 10 min, then hourly, before later events', async () => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = status(500);
  await pushes.append(2);
  await world.settle();
  for (const [attempts, wait] of [
    [1, 5],
    [2, 30],
    [3, 120],
    [4, 600],
    [5, 3_600],
    [6, 3_600],
  ] as const) {
    expect(pushes.receiver.attempts).toHaveLength(attempts);
    await world.advance(`${wait - 2} s`);
    await world.settle();
    expect(pushes.receiver.attempts).toHaveLength(attempts);
    await world.advance('2 s');
    await world.settle();
  }
  expect(new Set(pushes.receiver.attempts.map(({ headers }) => headers['webhook-id']))).toEqual(new Set(['1-1']));
  expect(await pushes.read(id)).toMatchObject({
    state: 'retrying',
    failures: 7,
    next: { cursor: '1-1', type: 'person.synced' },
    lastAnswer: { status: 500, fault: 'error-status' },
    behind: 2,
  });
  pushes.receiver.respond = status(200);
  await world.advance('1 h');
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
  expect(await pushes.read(id)).toMatchObject({ state: 'active', failures: 0, failingSince: null, cursor: '1-2' });
});

test('Retry-After postpones the next attempt', async () => {
  await pushes.subscribe();
  pushes.receiver.respond = status(429, { 'retry-after': '90' });
  await pushes.append(1);
  await world.settle();
  await world.advance('80 s');
  await world.settle();
  expect(pushes.receiver.attempts).toHaveLength(1);
  await world.advance('11 s');
  await world.settle();
  expect(pushes.receiver.attempts).toHaveLength(2);
});

test.each([
  ['a redirect', status(307, { location: 'http://127.0.0.1:1/' }), { status: 307, fault: 'redirect' }],
  ['a client error', status(404), { status: 404, fault: 'error-status' }],
  ['another protocol', status(101, SWITCH_PROTOCOL), { status: null, fault: 'no-answer' }],
  ['a closed connection', ((answer) => answer.destroy()) as Respond, { status: null, fault: 'no-answer' }],
])('%s is a failed attempt', async (_what, respond, answer) => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = respond;
  await pushes.append(1);
  await world.settle();
  expect(await pushes.read(id)).toMatchObject({ state: 'retrying', lastAnswer: answer });
});

test.each([
  ['a Location', status(299, { location: '/elsewhere' })],
  ['a page of HTML', ((answer) => answer.writeHead(200).end('<html>'.repeat(50_000))) as Respond],
  ['an answer that is cut off', ((answer) => answer.writeHead(202).write('{', () => answer.destroy())) as Respond],
])('a 2xx with %s is a success', async (_what, respond) => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = respond;
  await pushes.append(2);
  await world.settle();
  expect(pushes.receiver.attempts.map(({ headers }) => headers['webhook-id'])).toEqual(cursors(1, 2));
  expect(await pushes.read(id)).toMatchObject({ state: 'active', cursor: '1-2', lastAnswer: { fault: null } });
});

test('an endpoint with an untrusted certificate gets nothing', async () => {
  const untrusted = await PushReceiver.start(SELF_SIGNED);
  const { id } = await pushes.subscribe({ url: untrusted.url });
  await pushes.append(1);
  await world.settle();
  await untrusted.close();
  expect(untrusted.attempts).toEqual([]);
  expect(await pushes.read(id)).toMatchObject({ state: 'retrying', lastAnswer: { status: null, fault: 'tls' } });
});

test('an endpoint that does not answer within 15 seconds has failed', async () => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = () => undefined;
  await pushes.append(1);
  const settled = world.settle();
  await world.eventually('the attempt arrives', () => pushes.receiver.attempts.length === 1);
  await world.advance('15 s');
  await settled;
  expect(await pushes.read(id)).toMatchObject({ lastAnswer: { status: null, fault: 'timeout' } });
});

test('410 pauses immediately, with an event and an entry in health, and resuming loses nothing', async () => {
  const { id } = await pushes.subscribe({ types: ['person.synced'] });
  pushes.receiver.respond = status(410);
  await pushes.append(2);
  await world.settle();
  expect(await pushes.read(id)).toMatchObject({ state: 'paused', pausedReason: 'endpoint-gone', cursor: '1-0' });
  expect(await pauses()).toEqual([[`subscriptions/${id}`, { reason: 'endpoint-gone' }]]);
  const health = await world.call<{ causes?: { code: string; cause: string }[] }>('GET', '/health/ready');
  const paused = health.body.causes?.find(({ code }) => code === 'subscriptions-paused');
  expect(paused?.cause).toContain(`${new URL(pushes.receiver.url).host} (the endpoint answered 410)`);
  pushes.receiver.respond = status(200);
  await world.advance('2 h');
  await world.settle();
  expect(pushes.receiver.taken).toEqual([]);
  await pushes.patch(id, { paused: false });
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
});

test('pauses after five days without a success; a resume sends all events since then', async () => {
  const { id } = await pushes.subscribe({ types: ['person.synced'] });
  pushes.receiver.respond = status(503);
  await pushes.append(1);
  await world.settle();
  for (let hours = 0; hours < 5 * 24 - 1; hours += 1) {
    await world.advance('1 h');
    await world.settle();
  }
  expect(await pushes.read(id)).toMatchObject({ state: 'retrying' });
  await pushes.append(1);
  await world.advance('2 h');
  await world.settle();
  expect(await pushes.read(id)).toMatchObject({ state: 'paused', pausedReason: 'no-success' });
  expect(await pauses()).toEqual([[`subscriptions/${id}`, { reason: 'no-success' }]]);
  await pushes.append(3);
  await world.advance('5 d');
  await world.settle();
  pushes.receiver.respond = status(200);
  await pushes.patch(id, { paused: false });
  await world.settle();
  expect(pushes.receiver.taken.filter((cursor) => cursor !== '1-3')).toEqual(['1-1', '1-2', '1-4', '1-5', '1-6']);
});

test.each(['paused', 'failing'])('a %s subscription with a deleted next event is cursor-expired', async (before) => {
  const { id } = await pushes.subscribe();
  if (before === 'paused') await pushes.patch(id, { paused: true });
  else pushes.receiver.respond = status(500);
  await pushes.append(5);
  await world.settle();
  await world.sql('INSERT INTO feed_state (pruned_to) VALUES (2)');
  await world.advance('5 s');
  await world.settle();
  const refused = await world.call('PATCH', `/v1/subscriptions/${id}`, { body: { paused: false } });
  expect(refused).toMatchObject({
    status: 409,
    body: { type: 'urn:notebridge:problem:cursor-expired', pointer: '/after' },
  });
  expect(await pushes.read(id)).toMatchObject({ state: 'cursor-expired', cursor: '1-0' });
  pushes.receiver.respond = status(204);
  await pushes.patch(id, { after: '0', paused: false });
  await world.settle();
  expect(pushes.receiver.taken.slice(0, 3)).toEqual(cursors(3, 5));
});

test('a restore of the database expires every cursor', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(1);
  await world.settle();
  await world.sql('INSERT INTO feed_state (epoch) VALUES (7)');
  await world.settle();
  expect(await pushes.read(id)).toMatchObject({ state: 'cursor-expired', behind: 0 });
  await pushes.patch(id, { after: 'latest' });
  await pushes.append(1);
  await world.settle();
  expect(pushes.receiver.taken.at(-1)).toMatch(/^7-/);
});

test('while sending is held nothing is pushed, and afterwards everything is', async () => {
  const { id } = await pushes.subscribe();
  await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-1' } });
  await pushes.append(2);
  await world.settle();
  expect(pushes.receiver.attempts).toEqual([]);
  const test = await world.call('POST', `/v1/subscriptions/${id}/test`);
  expect(test).toMatchObject({ status: 503, body: { type: 'urn:notebridge:problem:sending-held' } });
  await world.call('PUT', '/v1/sending', { body: { held: false } });
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
});

test('a pause during a delivery ends after that event, which is not sent again', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(3);
  const first = await pushes.inDelivery();
  await pushes.patch(id, { paused: true });
  await first.answer(200);
  await world.settle();
  expect(pushes.receiver.taken).toEqual(['1-1']);
  expect(await pushes.read(id)).toMatchObject({ state: 'paused', cursor: '1-1', behind: 2 });
  await pushes.patch(id, { paused: false });
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 3));
});

test('another process continues only when the last attempt of a dead one can no longer arrive', async () => {
  await pushes.subscribe();
  await pushes.append(2);
  const dead = await world.startAnother();
  await dead.beat();
  pushes.receiver.respond = () => undefined;
  const ended = dead.work.jobs();
  await world.eventually('the first event arrives', () => pushes.receiver.attempts.length === 1);
  pushes.receiver.respond = status(200);
  await world.settle();
  await world.advance('14 s'); // it is dead after 8 s without a heartbeat
  await world.settle();
  expect(pushes.receiver.attempts).toHaveLength(1);
  await world.advance('2 s');
  await ended;
  await world.advance('6 s'); // the attempt timed out, and is repeated 5 s later
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
});

test('an attempt that begins late is marked again, so that no other process pushes meanwhile', async () => {
  await pushes.subscribe();
  await pushes.append(2);
  const other = await world.startAnother();
  const first = await pushes.inDelivery();
  const blocker = await world.database.pool.connect();
  await blocker.query('BEGIN; SELECT FROM subscriptions FOR UPDATE');
  const done = first.answer(204);
  await world.eventually('the success waits for the row', async () => {
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return (await world.sql(waiting)).length === 1;
  });
  await world.advance('6 s');
  pushes.receiver.respond = () => undefined;
  await blocker.query('COMMIT');
  blocker.release();
  await world.eventually('the second event arrives', () => pushes.receiver.attempts.length === 2);
  await world.advance('14500 ms'); // 20.5 s after the first mark; the attempt still has half a second
  await other.work.jobs();
  expect(pushes.receiver.attempts).toHaveLength(2);
  pushes.receiver.respond = status(204);
  await world.advance('1 s');
  await done;
  await world.advance('5 s');
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
});

test('nothing is pushed to a paused endpoint, even if it is due', async () => {
  const { id } = await pushes.subscribe();
  await pushes.patch(id, { paused: true });
  await pushes.append(1);
  await world.sql('UPDATE subscriptions SET due_at = now()');
  await world.settle();
  expect(pushes.receiver.attempts).toEqual([]);
});

test('time on hold does not count toward the five days', async () => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = status(503);
  await pushes.append(1);
  await world.settle();
  await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-1' } });
  await world.advance('6 d');
  await world.call('PUT', '/v1/sending', { body: { held: false } });
  await world.settle();
  expect(pushes.receiver.attempts).toHaveLength(2);
  expect(await pushes.read(id)).toMatchObject({ state: 'retrying', failures: 2 });
});

test('a hold during a delivery stops the next event', async () => {
  await pushes.subscribe();
  await pushes.append(3);
  const first = await pushes.inDelivery();
  await world.call('PUT', '/v1/sending', { body: { held: true, reason: 'CASE-1' } });
  await first.answer(204);
  expect(pushes.receiver.taken).toEqual(['1-1']);
  await world.call('PUT', '/v1/sending', { body: { held: false } });
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 3));
});

test('a failure of the old address does not count for the new one', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(1);
  const first = await pushes.inDelivery();
  await pushes.patch(id, { url: `${pushes.receiver.url}/new` });
  await first.answer(410);
  expect(pushes.receiver.taken).toEqual(['1-1']);
  expect(await pushes.read(id)).toMatchObject({ state: 'active', failures: 0 });
});

test('a new address also gets the event that the old one accepts during the change', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(2);
  const first = await pushes.inDelivery();
  await pushes.patch(id, { url: `${pushes.receiver.url}/new` });
  await first.answer(204);
  expect(pushes.receiver.taken).toEqual(['1-1', '1-1', '1-2']);
});

test.each([
  [undefined, ['1-2', '1-1', '1-2', '1-3']],
  ['1-0', ['1-2', '1-1', '1-2', '1-3']],
])('wider types take effect for events that were passed over during a delivery (after: %s)', async (after, taken) => {
  const { id } = await pushes.subscribe({ types: ['session.notes-ready'] });
  await pushes.append(1);
  await pushes.append(1, 'session.notes-ready');
  await pushes.append(1);
  const passing = await pushes.inDelivery();
  await pushes.patch(id, { types: null, after });
  await passing.answer(204);
  expect(pushes.receiver.taken).toEqual(taken);
});

test('a deletion during a delivery stops the next event', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(2);
  const first = await pushes.inDelivery();
  await world.call('DELETE', `/v1/subscriptions/${id}`);
  await first.answer(204);
  expect(pushes.receiver.taken).toEqual(['1-1']);
});

test('a secret that was rotated during a delivery signs the next event, and repeats none', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(2);
  const first = await pushes.inDelivery();
  await world.call('POST', `/v1/subscriptions/${id}/rotate-secret`);
  await first.answer(204);
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
  const signatures = pushes.receiver.attempts.map(({ headers }) => String(headers['webhook-signature']).split(' '));
  expect(signatures.map(({ length }) => length)).toEqual([1, 2]);
});

test('a cursor that was chosen during a delivery stays', async () => {
  const { id } = await pushes.subscribe();
  await pushes.append(3);
  const first = await pushes.inDelivery();
  await pushes.patch(id, { after: '1-2' });
  await first.answer(204);
  expect(pushes.receiver.taken).toEqual(['1-1', '1-3']);
  expect(await pushes.read(id)).toMatchObject({ cursor: '1-3' });
});

test('a connection that the endpoint closed while it was unused costs no failure', async () => {
  const { id } = await pushes.subscribe();
  const used = new WeakSet<object>();
  let isClosed = false;
  pushes.receiver.respond = (answer) => {
    const { socket } = answer.req;
    if (used.has(socket) && !isClosed) {
      isClosed = true;
      answer.destroy();
    } else {
      used.add(socket);
      answer.writeHead(204).end();
    }
  };
  let events = 0;
  // A busy machine may take longer for an event than an unused connection is kept.
  for (; events < 20 && !isClosed; events += 1) {
    await pushes.append(1);
    await world.settle();
  }
  expect(isClosed).toBe(true);
  expect(pushes.receiver.taken).toEqual(cursors(1, events));
  expect(await pushes.read(id)).toMatchObject({ state: 'active', failures: 0 });
});

test('an address that the settings no longer allow gets nothing', async () => {
  const { id } = await pushes.subscribe();
  await world.restart({ PLATFORM_BASE_URL: 'https://platform.example.org' });
  await pushes.append(1);
  await world.settle();
  expect(pushes.receiver.attempts).toEqual([]);
  expect(await pushes.read(id)).toMatchObject({ state: 'retrying', lastAnswer: { fault: 'address-not-allowed' } });
});

test('a subscription whose work throws backs off alone, and says so', async () => {
  const broken = await pushes.subscribe();
  await world.sql(`UPDATE subscriptions SET secret = 'damaged'`);
  const sound = await pushes.subscribe();
  await pushes.append(2);
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
  expect(await pushes.read(sound.id)).toMatchObject({ state: 'active', behind: 0 });
  const lastAnswer = { status: null, fault: 'internal' };
  const failing = { state: 'retrying', failures: 1, failingSince: null, lastAnswer };
  expect(await pushes.read(broken.id)).toMatchObject(failing);
  await world.advance('14 s');
  await world.settle();
  expect(await pushes.read(broken.id)).toMatchObject({ failures: 1 });
  await world.advance('2 s');
  await world.settle();
  expect(await pushes.read(broken.id)).toMatchObject({ failures: 2 });
  for (const wait of ['1 min', '5 min'] as const) {
    await world.advance(wait);
    await world.settle();
  }
  const health = await world.call<{ causes?: { code: string; cause: string }[] }>('GET', '/health/ready');
  expect(health.body.causes?.map(({ code }) => code)).toContain('pushes-break');
});

test('work that broke once, for an event of no interest, leaves no failure behind', async () => {
  const { id } = await pushes.subscribe({ types: ['session.notes-ready'] });
  const reader = jest.spyOn(world.get(FeedReader), 'read').mockRejectedValueOnce(new Error('broken once'));
  await pushes.append(1);
  await world.settle();
  reader.mockRestore();
  await world.advance('16 s');
  await world.settle();
  expect(await pushes.read(id)).toMatchObject({ state: 'active', failures: 0, cursor: '1-1' });
});

test('a retry that succeeds while its secret is rotated ends the failures', async () => {
  const { id } = await pushes.subscribe();
  pushes.receiver.respond = status(401);
  await pushes.append(1);
  await world.settle();
  await world.advance('5 s');
  const retry = await pushes.inDelivery();
  await world.call('POST', `/v1/subscriptions/${id}/rotate-secret`);
  await retry.answer(204);
  expect(await pushes.read(id)).toMatchObject({
    state: 'active',
    failures: 0,
    failingSince: null,
    deliveredAt: expect.any(String),
  });
});

test('a wiped store of the queues loses no event', async () => {
  await pushes.subscribe();
  await pushes.append(2);
  world.forgetJobs();
  await world.settle();
  expect(pushes.receiver.taken).toEqual(cursors(1, 2));
});
