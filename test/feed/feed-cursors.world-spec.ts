import { SeededRandom } from '../../simulator/seeded-random.js';
import { Env } from '../../src/config/env.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { FeedEventResponse, FeedFilter, FeedPageResponse } from '../../src/feed/feed.dto.js';
import { Feed } from '../../src/feed/feed.js';
import { numberOf } from '../../src/feed/feed-cursor.js';
import { FeedNumbers } from '../../src/feed/feed-numbers.js';
import { FeedReader } from '../../src/feed/feed-reader.js';
import { Problem } from '../../src/http/problem/problem.js';
import { Retention } from '../../src/operations/retention.js';
import { retentionRules } from '../../src/operations/retention-rules.js';
import { type FeedType } from '../../src/words/feed-types.js';
import { appendEvents } from '../support/feed-events.js';
import { type OpenTransaction, openTransaction } from '../support/open-transaction.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const append = (events: number, type?: FeedType) => appendEvents(world, events, type);

const page = async (query: string): Promise<FeedPageResponse> => {
  const { status, body } = await world.call<FeedPageResponse>('GET', `/v1/events?${query}`);
  expect([query, status]).toEqual([query, 200]);
  return body;
};

const problem = async (query: string) => {
  const answer = await world.call<Record<string, unknown>>('GET', `/v1/events?${query}`);
  const { type, pointer, detail, continueAfter } = answer.body;
  return { status: answer.status, type: String(type).split(':').at(-1), pointer, detail, continueAfter };
};

/** Retention deletes the first events and keeps the later ones. */
async function prune(old: number, young: number): Promise<void> {
  await append(old);
  await world.advance('100 d');
  await append(young);
  await world.get(Retention).dropOld();
}

describe('a cursor', () => {
  test('is gone if retention deleted an event after it, also if it was never read', async () => {
    await append(5);
    const { cursor } = await page('limit=2');
    await prune(5, 3);
    expect(await problem(`after=${cursor}`)).toMatchObject({
      status: 410,
      type: 'cursor-gone',
      detail: expect.stringContaining('retention'),
      continueAfter: '1-10',
    });
    for (const after of ['after=0', 'after=1-10', '']) {
      expect((await page(after)).items.map((event) => event.cursor)).toEqual(['1-11', '1-12', '1-13']);
    }
  });

  test('is gone ahead of the feed', async () => {
    await append(3);
    expect((await page('after=1-3')).items).toEqual([]);
    expect(await problem('after=1-4')).toMatchObject({ status: 410, continueAfter: '1-0' });
  });

  test('is gone after the epoch was raised, and no two restores share an epoch', async () => {
    await append(3);
    const raise = () => world.get(PrismaService).transaction((tx) => world.get(Feed).raiseEpoch(tx));
    await raise();
    const { cursor, items } = await page('');
    expect(await problem('after=1-2')).toMatchObject({ status: 410, continueAfter: cursor.replace(/3$/, '0') });
    expect((await page(`after=${items[1]?.cursor}`)).items).toHaveLength(1);
    await world.sql('DELETE FROM feed_state'); // the same backup once more
    await world.advance('1 min');
    await raise();
    expect(await problem(`after=${cursor}`)).toMatchObject({ status: 410 });
  });

  test('is on every page, and after=latest skips all events so far', async () => {
    expect(await page('')).toEqual({ items: [], cursor: '1-0', nextCursor: null });
    await append(1_200);
    expect(await page('after=latest')).toEqual({ items: [], cursor: '1-1200', nextCursor: null });
    expect(await page('limit=200')).toMatchObject({ cursor: '1-200', nextCursor: '1-200' });
    expect(await page('after=1-1199')).toMatchObject({ cursor: '1-1200', nextCursor: null });
  });
});

describe('a filtered reader', () => {
  test('advances past events that do not match, at most 1,000 a page', async () => {
    await append(1_100);
    await append(2, 'person.deleted');
    const first = await page('types=person.deleted,session.failed');
    expect(first).toEqual({ items: [], cursor: '1-1000', nextCursor: '1-1000' });
    const second = await page(`types=person.deleted,session.failed&after=${first.cursor}`);
    expect([second.items.length, second.cursor, second.nextCursor]).toEqual([2, '1-1102', null]);
    expect(await page('subject=clients/nobody')).toMatchObject({ cursor: '1-1102', nextCursor: null });
  });

  test('gets 400 for an unknown type, which the problem names unless it may be personal data', async () => {
    expect(await problem('types=person.synced,person.merge')).toMatchObject({
      status: 400,
      type: 'validation',
      pointer: '/types',
      detail: expect.stringContaining('"person.merge"'),
    });
    expect((await problem('types=Jane%20Roe')).detail).not.toContain('Jane');
    for (const query of ['types=', 'subject=clients/%00']) expect(await problem(query)).toMatchObject({ status: 400 });
  });

  test('finds the events of a person under each of its ids, also new ones while it waits', async () => {
    const name = { firstName: 'Ada', lastName: 'Osei' };
    await world.call('PUT', '/v1/providers/p-1', { body: { ...name, email: 'p-1@example.org' } });
    for (const id of ['c/1', 'c-2', 'c-3']) {
      await world.call('PUT', `/v1/clients/${encodeURIComponent(id)}`, { body: { ...name, providers: ['p-1'] } });
    }
    await world.settle();
    const subjects = async (subject: string) =>
      (await page(`subject=${encodeURIComponent(subject)}`)).items.map((event) => event.subject);
    expect(await subjects('clients/c%2F1')).toEqual(['clients/c%2F1']);
    const head = await page('after=latest');
    const waiting = world.get(FeedReader).read(head.cursor, 50, { subject: 'clients/c%2F1' });
    expect((await waiting).items).toEqual([]);
    const events = world.call<FeedPageResponse>('GET', `/v1/events?after=${head.cursor}&subject=clients%2Fc%252F1`, {
      wait: 60,
    });
    await world.call('POST', '/v1/clients/c%2F1/rename', { body: { externalId: 'c-9' } });
    expect((await events).body.items.map((event) => event.subject)).toEqual(['clients/c-9']);
    await world.call('POST', '/v1/clients/c-2/merge', { body: { into: 'c-9' } });
    await world.settle();
    const all = ['clients/c%2F1', 'clients/c-2', 'clients/c-9', 'clients/c-9'];
    for (const id of ['clients/c-9', 'clients/c-2', 'clients/c%2F1']) expect((await subjects(id)).sort()).toEqual(all);
    expect(await subjects('clients/%E0%A4%A')).toEqual([]);
  });
});

/** A reader with a filter, and the events that it got since its last start. */
interface Reader {
  readonly filter: FeedFilter;
  after: string;
  start: bigint;
  got: string[];
}

const SEED = Number(process.env.SEED);
const STEPS = 1_500;
const TYPES: FeedType[] = ['person.synced', 'person.deleted', 'session.failed'];
const FILTERS: FeedFilter[] = [
  {},
  { types: ['person.deleted'] },
  { types: ['person.synced', 'session.failed'] },
  { subject: 'clients/1' },
  { subject: 'clients/2', types: ['person.synced'] },
  { subject: 'clients/9' },
];

test('any filter and limit give each match once and in order, or 410 after retention', async () => {
  const random = new SeededRandom(SEED);
  const [feed, reader] = [world.get(Feed), world.get(FeedReader)];
  /** Only events, because each of the other kinds would open a connection. */
  const retention = retentionRules(world.get(Env)).events;
  const pick = <T>(items: readonly T[]) => items[random.below(items.length)] as T;
  /** Every event that ever had a number. */
  const all = new Map<bigint, FeedEventResponse>();
  const readers: Reader[] = FILTERS.map((filter) => ({ filter, after: '0', start: 0n, got: [] }));
  const open: OpenTransaction[] = [];
  let gone = 0;

  const remember = async () => {
    await world.get(FeedNumbers).assign();
    for (const row of await world.sql<FeedEventResponse>(
      'SELECT cursor, type, subject FROM feed_events ORDER BY cursor',
    )) {
      all.set(BigInt(row.cursor), row);
    }
  };
  const oldest = async () => (await world.sql<{ n: string }>('SELECT min(cursor) AS n FROM feed_events'))[0]?.n ?? '1';
  const matches = ({ filter, start, after }: Reader) =>
    [...all].flatMap(([number, { type, subject }]) => {
      const isRead = number > start && number <= numberOf(after);
      const isWanted = (filter.types?.includes(type) ?? true) && (filter.subject ?? subject) === subject;
      return isRead && isWanted ? [`1-${number}`] : [];
    });
  const check = async (each: Reader) => {
    await remember();
    expect([each.filter, each.got]).toEqual([each.filter, matches(each)]);
  };
  const read = async (each: Reader) => {
    if (each.after === '0') each.start = BigInt(await oldest()) - 1n;
    try {
      const { items, cursor } = await reader.read(each.after, 1 + random.below(5), each.filter);
      each.got.push(...items.map((item) => item.cursor));
      each.after = cursor;
    } catch (error) {
      expect(error).toMatchObject({ status: 410 });
      expect(BigInt(await oldest())).toBeGreaterThan(numberOf(each.after) + 1n);
      gone += 1;
      await check(each);
      const { continueAfter } = (error as Problem).more.extensions as { continueAfter: string };
      Object.assign(each, { after: continueAfter, start: numberOf(continueAfter), got: [] });
    }
  };
  const pruneAll = async () => {
    const days = Number(retention?.days);
    await world.sql(retention?.statement ?? '', [new Date(world.now().getTime() - days * 86_400_000)]);
  };
  const write = async () => {
    const opened = await openTransaction(world.get(PrismaService));
    for (let events = 1 + random.below(4); events > 0; events -= 1) {
      await feed.append(opened.tx, { type: pick(TYPES), subject: `clients/${random.below(4)}`, data: {} });
    }
    open.push(opened);
  };
  try {
    for (let step = 0; step < STEPS; step += 1) {
      const chance = random.below(100);
      if (chance < 25 && open.length < 3) await write();
      else if (chance < 50) await open.splice(random.below(open.length), 1)[0]?.[chance < 48 ? 'commit' : 'rollBack']();
      else if (chance < 52) await world.advance('20 d');
      else if (chance < 54) await remember().then(pruneAll);
      else await read(pick(readers));
    }
  } finally {
    await Promise.all(open.map((each) => each.commit()));
  }
  for (const each of readers) {
    const { cursor } = await page('after=latest');
    for (let pages = 0; each.after !== cursor && pages < STEPS; pages += 1) await read(each);
    await check(each);
  }
  expect(gone).toBeGreaterThan(3);
  expect(all.size).toBeGreaterThan(300);
});
