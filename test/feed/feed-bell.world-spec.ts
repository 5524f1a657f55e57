import { PrismaService } from '../../src/database/prisma.service.js';
import type { FeedPageResponse } from '../../src/feed/feed.dto.js';
import { Feed } from '../../src/feed/feed.js';
import { FeedBell } from '../../src/feed/feed-bell.js';
import { FeedNumbers } from '../../src/feed/feed-numbers.js';
import { FeedReader } from '../../src/feed/feed-reader.js';
import { ADMIN_KEY } from '../support/app.js';
import { leaveEvents } from '../support/feed-events.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const append = () =>
  world
    .get(PrismaService)
    .transaction((tx) => world.get(Feed).append(tx, { type: 'person.synced', subject: 'clients/c', data: {} }));

/** Counts the rings that a process hears, and resolves for each. */
function hearing(bell: FeedBell) {
  let heard = 0;
  bell.onRing(() => {
    heard += 1;
  });
  return { next: (what: string, before = heard) => world.eventually(what, () => heard > before), count: () => heard };
}

const LISTENERS = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'notebridge-feed'`;

test('a commit rings in other processes, over one connection per process with waiting readers', async () => {
  const { app, url } = await world.startAnother();
  const bell = app.get(FeedBell);
  const rings = hearing(bell);
  // The world's own service may listen since an earlier file.
  const before = (await world.sql(LISTENERS)).length;
  const connected = rings.next('the other process listens');
  bell.listen();
  bell.listen();
  await connected;
  const rung = rings.next('the other process hears the commit');
  await append();
  await rung;
  expect(await world.sql(LISTENERS)).toHaveLength(before + 1);
  expect(url).not.toBe(world.url);
});

test('a lost connection is replaced after a second', async () => {
  const { app } = await world.startAnother();
  const bell = app.get(FeedBell);
  const rings = hearing(bell);
  const connected = rings.next('the process listens');
  bell.listen();
  await connected;
  const { processID } = Reflect.get(bell, 'client') as unknown as { processID: number };
  await world.sql(`SELECT pg_terminate_backend($1)`, [processID]);
  await world.eventually('the loss is noticed', () => Reflect.get(bell, 'client') === undefined);
  bell.listen();
  expect(Reflect.get(bell, 'client')).toBeUndefined();
  await world.advance('1 s');
  const again = rings.next('the process listens again');
  bell.listen();
  await again;
  const rung = rings.next('the process hears the next commit');
  await append();
  await rung;
});

test('a transaction with several events rings once, after its commit; a rollback does not ring', async () => {
  const rang = jest.spyOn(world.get(FeedBell), 'ring');
  const prisma = world.get(PrismaService);
  const event = { type: 'person.synced', subject: 'clients/c', data: {} } as const;
  const fails = prisma.transaction(async (tx) => {
    await world.get(Feed).append(tx, event);
    throw new Error('taken back');
  });
  await expect(fails).rejects.toThrow('taken back');
  expect(rang).not.toHaveBeenCalled();
  await prisma.transaction(async (tx) => {
    for (let events = 0; events < 3; events += 1) await world.get(Feed).append(tx, event);
    expect(rang).not.toHaveBeenCalled();
  });
  expect(rang).toHaveBeenCalledTimes(1);
});

test('readers get events without any notification, by polling', async () => {
  const waiting = world.call<FeedPageResponse>('GET', '/v1/events', { wait: 60 });
  await leaveEvents(world, 1);
  await world.get(FeedNumbers).assign();
  expect((await waiting).body.items).toHaveLength(1);
});

test('a reader whose filter leaves out what others write reads at most once a second', async () => {
  const read = jest.spyOn(world.get(FeedReader), 'read');
  const waiting = fetch(`${world.url}/v1/events?after=latest&types=import.finished`, {
    headers: { authorization: `Bearer ${ADMIN_KEY}`, prefer: 'wait=60' },
  });
  await world.eventually('it has read', () => read.mock.calls.length > 0);
  const rings = hearing(world.get(FeedBell));
  const beganMs = performance.now();
  for (let events = 0; events < 10; events += 1) {
    const rung = rings.next('it hears an event that it does not want');
    await append();
    await rung;
    await world.get(FeedReader).head();
  }
  const seconds = Math.ceil((performance.now() - beganMs) / 1_000);
  expect(read.mock.calls.length).toBeLessThanOrEqual(2 + seconds);
  await leaveEvents(world, 1, 'import.finished');
  await world.get(FeedBell).publishLost();
  const { items } = (await (await waiting).json()) as FeedPageResponse;
  expect(items.map(({ type }) => type)).toEqual(['import.finished']);
});

test('a reader whose key is revoked while it waits gets no event', async () => {
  const body = { name: 'a key', scopes: ['events:read'] };
  const made = (await world.call<{ id: string; key: string }>('POST', '/v1/api-keys', { body })).body;
  const read = jest.spyOn(world.get(FeedReader), 'read');
  const waiting = fetch(`${world.url}/v1/events?after=latest`, {
    headers: { authorization: `Bearer ${made.key}`, prefer: 'wait=60' },
  });
  await world.eventually('it has read', () => read.mock.calls.length > 0);
  await world.call('DELETE', `/v1/api-keys/${made.id}`);
  await append();
  const answer = await waiting;
  expect([answer.status, await answer.text()]).toEqual([401, expect.not.stringContaining('clients/c')]);
});

test('a long poll has one audit entry, however often it was woken, and none without events', async () => {
  const entries = async () => {
    interface Entry {
      action: string;
      subjects: Record<string, string[]>;
    }
    const { items } = (await world.call<{ items: Entry[] }>('GET', '/v1/audit?limit=50')).body;
    return items.filter(({ action }) => action === 'GET /v1/events').map(({ subjects }) => subjects);
  };
  const rings = hearing(world.get(FeedBell));
  const read = jest.spyOn(world.get(FeedReader), 'read');
  const get = (query: string, wait: number) =>
    fetch(`${world.url}/v1/events?after=latest${query}`, {
      headers: { authorization: `Bearer ${ADMIN_KEY}`, prefer: `wait=${wait}` },
    });
  await get('', 1);
  const before = read.mock.calls.length;
  const waiting = get('&subject=clients/wanted', 60);
  await world.eventually('it has read', () => read.mock.calls.length > before);
  for (let events = 0; events < 3; events += 1) {
    const rung = rings.next('it hears an event that it does not want');
    await append();
    await rung;
  }
  const tx = (subject: string) =>
    world
      .get(PrismaService)
      .transaction((one) => world.get(Feed).append(one, { type: 'person.synced', subject, data: {} }));
  await tx('clients/wanted');
  await waiting;
  expect(await entries()).toEqual([{ client: ['wanted'] }]);
});
