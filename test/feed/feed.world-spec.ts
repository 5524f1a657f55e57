import { SeededRandom } from '../../simulator/seeded-random.js';
import { PrismaService, type Tx } from '../../src/database/prisma.service.js';
import type { FeedEventResponse } from '../../src/feed/feed.dto.js';
import { Feed } from '../../src/feed/feed.js';
import type { Page } from '../../src/http/request/page.js';
import { backendPid, pidsBlockedBy } from '../support/databases.js';
import { type OpenTransaction, openTransaction } from '../support/open-transaction.js';
import { useWorld } from '../world/use-world.js';

const SEED = Number(process.env.SEED);
const WRITERS = 3;
const EVENTS_EACH = 40;
const KILLS = 5;
const ADMIN_KEY = 'admin-key-of-the-notebridge-tests';

const world = useWorld();

const append = (events: number) =>
  world.sql(
    `INSERT INTO feed_events (type, subject, data)
     SELECT 'person.synced', 'clients/c-' || n, '{}' FROM generate_series(1, $1::int) AS n`,
    [events],
  );

const readPage = async (query: string): Promise<Page<FeedEventResponse>> =>
  (await world.call<Page<FeedEventResponse>>('GET', `/v1/events?${query}`)).body;

/** Opens a stream; resolves when its headers have arrived. */
async function openStream({ key = ADMIN_KEY, after = '0', url = world.url } = {}) {
  const closing = new AbortController();
  const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream', 'last-event-id': after };
  const answer = await fetch(`${url}/v1/events`, { headers, signal: closing.signal });
  return { answer, close: () => closing.abort() };
}

/** The events of a stream, as they arrive. */
async function* eventsOf({ body }: Response): AsyncGenerator<FeedEventResponse> {
  let text = '';
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString();
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const data = /^data: (.*)$/m.exec(block)?.[1];
      if (data) yield JSON.parse(data);
    }
  }
}

describe('readers', () => {
  test.each(['poll', 'stream'] as const)(
    'get each event once and in order while many write, by %s, killed five times',
    async (way) => {
      const random = new SeededRandom(SEED);
      const ofReader = new SeededRandom(SEED + 1);
      const feed = world.get(Feed);
      const committed: string[] = [];
      const seen: FeedEventResponse[] = [];
      const last = () => seen.at(-1)?.cursor ?? '0';
      const isAllRead = () => writers.length === 0 && seen.length === committed.length;

      const pollOnce = async () => {
        const { items } = await readPage(`after=${last()}&limit=${1 + ofReader.below(20)}`);
        // A killed reader keeps what it wrote down of its page.
        seen.push(...items.slice(0, ofReader.below(4) === 0 ? ofReader.below(items.length + 1) : undefined));
      };
      const streamUntil = async (isEnough: () => boolean) => {
        const { answer, close } = await openStream({ after: last() });
        for await (const event of eventsOf(answer)) {
          seen.push(event);
          if (isEnough()) break;
        }
        close();
      };
      const stream = async () => {
        for (let kills = 1; kills <= KILLS; kills += 1) {
          const enough = seen.length + 1 + ofReader.below((WRITERS * EVENTS_EACH) / KILLS / 2);
          await streamUntil(() => seen.length >= enough);
        }
      };

      /** Each has a transaction open with an event in it, which others overtake. */
      const writers = await Promise.all(
        Array.from({ length: WRITERS }, async (_, writer) => ({
          writer,
          number: 0,
          open: undefined as OpenTransaction | undefined,
        })),
      );
      const step = async () => {
        const writer = writers[random.below(writers.length)];
        if (!writer) return;
        const { open, number } = writer;
        if (number > 0) {
          const isKept = random.fraction() > 0.1;
          await open?.[isKept ? 'commit' : 'rollBack']();
          if (isKept) committed.push(`${writer.writer}/${number}`);
        }
        writer.number += 1;
        if (writer.number > EVENTS_EACH) {
          writers.splice(writers.indexOf(writer), 1);
          return;
        }
        writer.open = await openTransaction(world.get(PrismaService));
        const data = { writer: writer.writer, number: writer.number };
        await feed.append(writer.open.tx, { type: 'person.synced', subject: 'clients/c', data });
      };

      const streaming = way === 'stream' ? stream() : undefined;
      while (writers.length > 0) {
        await step();
        // Another reader asks concurrently, and both assign cursors.
        if (random.below(4) === 0) await Promise.all([way === 'poll' && pollOnce(), readPage('limit=1')]);
      }
      await streaming;
      if (way === 'stream' && !isAllRead()) await streamUntil(isAllRead);
      for (let pages = 0; way === 'poll' && pages < 2 * committed.length && !isAllRead(); pages += 1) await pollOnce();

      const byWriter = (names: string[], writer: number) => names.filter((name) => name.startsWith(`${writer}/`));
      const names = seen.map(({ data }) => `${data.writer}/${data.number}`);
      for (let writer = 0; writer < WRITERS; writer += 1)
        expect(byWriter(names, writer)).toEqual(byWriter(committed, writer));
      expect(seen.map(({ cursor }) => cursor)).toEqual(committed.map((_, place) => `1-${place + 1}`));
    },
  );

  test('get each event once when one commits between two concurrent reads', async () => {
    const { pool } = world.database;
    const prisma = world.get(PrismaService);
    const [late, holder] = await Promise.all([openTransaction(prisma), pool.connect()]);
    const holderPid = await backendPid(holder);
    const type = 'person.synced' as const;
    const say = (tx: Tx, name: string) => world.get(Feed).append(tx, { type, subject: name, data: {} });
    await prisma.transaction((tx) => say(tx, 'first'));
    await say(late.tx, 'late');
    await prisma.transaction((tx) => say(tx, 'last'));
    await holder.query('BEGIN; SELECT FROM feed_events ORDER BY id DESC LIMIT 1 FOR UPDATE');
    const blocked = (pid: number) => () => pidsBlockedBy(pool, pid).then(([first]) => first);
    const one = readPage('');
    const onePid = await world.eventually('the first reader waits', blocked(holderPid));
    await late.commit();
    const two = readPage('');
    await world.eventually('the second reader waits', blocked(onePid));
    await holder.query('COMMIT');
    holder.release();
    const read = (await one).items.map(({ subject, cursor }) => `${cursor} ${subject}`);
    // The first reader may read after the second one has numbered the late event.
    expect(read.slice(0, 2)).toEqual(['1-1 first', '1-2 last']);
    expect((await two).items).toMatchObject([{}, {}, { subject: 'late', cursor: '1-3' }]);
  });

  test('reach the end even if they repeat their first "after" with each cursor', async () => {
    await append(25);
    const read: string[] = [];
    for (let cursor: string | null = ''; cursor !== null && read.length <= 25; ) {
      const page = await readPage(`after=0&limit=10${cursor && `&cursor=${cursor}`}`);
      read.push(...page.items.map(({ subject }) => subject));
      cursor = page.nextCursor;
    }
    expect(read).toEqual(Array.from({ length: 25 }, (_, at) => `clients/c-${at + 1}`));
  });

  test('give cursors to 1,000 events at a time', async () => {
    await append(2_500);
    expect((await readPage('limit=1')).items).toHaveLength(1);
    expect(await world.sql('SELECT count(cursor)::int AS n FROM feed_events')).toEqual([{ n: 1_000 }]);
    const read: string[] = [];
    for (let items: FeedEventResponse[] = []; read.length === 0 || items.length > 0; ) {
      ({ items } = await readPage(`limit=200&after=${read.at(-1) ?? 0}`));
      read.push(...items.map(({ cursor }) => cursor));
    }
    expect(read).toEqual(Array.from({ length: 2_500 }, (_, at) => `1-${at + 1}`));
  });

  test('have at most EVENT_STREAMS_PER_KEY streams per key', async () => {
    const { url } = await world.startAnother({ EVENT_STREAMS_PER_KEY: '3' });
    const streams = await Promise.all([1, 2, 3].map(() => openStream({ url })));
    expect(streams.map(({ answer }) => answer.status)).toEqual([200, 200, 200]);
    const { answer } = await openStream({ url });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '5']);
    expect(await answer.json()).toMatchObject({ type: 'urn:notebridge:problem:too-many-streams' });

    const body = { name: 'another reader', scopes: ['events:read'] };
    const { key } = (await world.call<{ key: string }>('POST', '/v1/api-keys', { body })).body;
    const other = await openStream({ url, key });
    expect(other.answer.status).toBe(200);

    streams[0]?.close();
    let again = await openStream({ url });
    while (again.answer.status === 429) again = await openStream({ url });
    expect(again.answer.status).toBe(200);
    for (const { close } of [...streams, other, again]) close();
  });
});
