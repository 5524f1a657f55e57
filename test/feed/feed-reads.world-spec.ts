import { setTimeout as delay } from 'node:timers/promises';
import { openUpload } from '../imports/open-upload.js';
import { ADMIN_KEY } from '../support/app.js';
import { leaveEvents } from '../support/feed-events.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const TABLES = ['feed_events', 'feed_state', 'subscriptions', 'subscription_attempts'];
const contents = () =>
  Promise.all(TABLES.map((table) => world.sql(`SELECT xmin::text, * FROM ${table} AS t ORDER BY t::text`)));

const READS: [path: string, wait: number][] = [
  ['/v1/events', 0],
  ['/v1/events?after=0&limit=2', 0],
  ['/v1/events?after=latest', 0],
  ['/v1/events?types=person.synced', 0],
  ['/v1/events?subject=clients/c-1', 0],
  ['/v1/events?after=latest', 1],
  ['/v1/overview', 0],
  ['/v1/subscriptions', 0],
];

/** Not by `world.call`, which publishes what was left, and lets the workers work while it waits. */
const get = (path: string, wait = 0) =>
  fetch(`${world.url}${path}`, { headers: { authorization: `Bearer ${ADMIN_KEY}`, prefer: `wait=${wait}` } });

test.each(READS)('GET %s with wait=%s writes nothing', async (path, wait) => {
  const { body } = await world.call<{ id: string }>('POST', '/v1/subscriptions', { body: { url: world.url } });
  await world.call('PATCH', `/v1/subscriptions/${body.id}`, { body: { paused: true } });
  await leaveEvents(world, 3);
  const before = await contents();
  const { status } = await get(path, wait);
  expect([status, await contents()]).toEqual([200, before]);
});

test('GET /v1/events does not wait for a process that numbers events', async () => {
  await leaveEvents(world, 1);
  const holder = await world.database.pool.connect();
  await holder.query('BEGIN; LOCK TABLE feed_events IN EXCLUSIVE MODE');
  const answer = get('/v1/events');
  const first = await Promise.race([answer.then(({ status }) => status), delay(3_000, 'waits')]);
  await holder.query('ROLLBACK');
  holder.release();
  await answer;
  expect(first).toBe(200);
});

test('events become visible while an import is being uploaded', async () => {
  const end = await openUpload(world, 'kind=clients');
  await leaveEvents(world, 1);
  const { body } = await world.call<{ items: object[] }>('GET', '/v1/events');
  expect(body.items).toHaveLength(1);
  expect(await end('externalId,firstName,lastName,providers\n')).toEqual(expect.any(String));
});
