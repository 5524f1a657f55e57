import { SeededRandom } from '../../simulator/seeded-random.js';
import { PrismaService } from '../../src/database/prisma.service.js';
import type { FeedEventResponse, FeedPageResponse } from '../../src/feed/feed.dto.js';
import { Feed } from '../../src/feed/feed.js';
import { FeedBell } from '../../src/feed/feed-bell.js';
import { FeedNumbers } from '../../src/feed/feed-numbers.js';
import type { Page } from '../../src/http/request/page.js';
import { ADMIN_KEY } from '../support/app.js';
import { backendPid, pidsBlockedBy } from '../support/databases.js';
import { appendEvents, leaveEvents } from '../support/feed-events.js';
import { type OpenTransaction, openTransaction } from '../support/open-transaction.js';
import { useWorld } from '../world/use-world.js';

const SEED = Number(process.env.SEED);
const WRITERS = 3;
const EVENTS_EACH = 40;

const world = useWorld();

const readPage = async (query: string): Promise<Page<FeedEventResponse>> =>
  (await world.call<Page<FeedEventResponse>>('GET', `/v1/events?${query}`)).body;

/** The events that a reader gets at once; `world.call` would publish what was left. */
async function visible(): Promise<FeedEventResponse[]> {
  const answer = await fetch(`${world.url}/v1/events`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } });
  return ((await answer.json()) as FeedPageResponse).items;
}

describe('readers', () => {
  test('get each event once and in order while many write and number, killed often', async () => {
    const random = new SeededRandom(SEED);
    const ofReader = new SeededRandom(SEED + 1);
    const feed = world.get(Feed);
    const processes = [world.app, (await world.startAnother()).app];
    const committed: string[] = [];
    const seen: FeedEventResponse[] = [];
    const isAllRead = () => writers.length === 0 && seen.length === committed.length;
    const publish = () => pick(processes).get(FeedBell).publishLost();
    const pick = <T>(items: readonly T[]) => items[ofReader.below(items.length)] as T;

    const pollOnce = async () => {
      const { items } = await readPage(`after=${seen.at(-1)?.cursor ?? '0'}&limit=${1 + ofReader.below(20)}`);
      // A killed reader keeps what it wrote down of its page.
      seen.push(...items.slice(0, ofReader.below(4) === 0 ? ofReader.below(items.length + 1) : undefined));
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

    while (writers.length > 0) {
      await step();
      if (random.below(4) === 0) await Promise.all([pollOnce(), publish(), publish()]);
    }
    await publish();
    for (let pages = 0; pages < 2 * committed.length && !isAllRead(); pages += 1) await pollOnce();

    const byWriter = (names: string[], writer: number) => names.filter((name) => name.startsWith(`${writer}/`));
    const names = seen.map(({ data }) => `${data.writer}/${data.number}`);
    for (let writer = 0; writer < WRITERS; writer += 1)
      expect(byWriter(names, writer)).toEqual(byWriter(committed, writer));
    expect(seen.map(({ cursor }) => cursor)).toEqual(committed.map((_, place) => `1-${place + 1}`));
  });

  test('get each event once when one commits while two processes number', async () => {
    const { pool } = world.database;
    const prisma = world.get(PrismaService);
    const other = await world.startAnother();
    const [late, holder] = await Promise.all([openTransaction(prisma), pool.connect()]);
    const holderPid = await backendPid(holder);
    const tell = (name: string) =>
      world.sql(`INSERT INTO feed_events (type, subject, data) VALUES ('person.synced', $1, '{}')`, [name]);
    await tell('first');
    await late.tx.$executeRaw`INSERT INTO feed_events (type, subject, data) VALUES ('person.synced', 'late', '{}')`;
    await tell('last');
    await holder.query('BEGIN; SELECT FROM feed_events ORDER BY id DESC LIMIT 1 FOR UPDATE');
    const blocked = (pid: number) => () => pidsBlockedBy(pool, pid).then(([first]) => first);
    const one = world.get(FeedNumbers).assign();
    const onePid = await world.eventually('the first process waits', blocked(holderPid));
    await late.commit();
    const two = other.app.get(FeedNumbers).assign();
    await world.eventually('the second process waits', blocked(onePid));
    expect(await visible()).toEqual([]);
    await holder.query('COMMIT');
    holder.release();
    await Promise.all([one, two]);
    const read = (await readPage('')).items.map(({ subject, cursor }) => `${cursor} ${subject}`);
    expect(read).toEqual(['1-1 first', '1-2 last', '1-3 late']);
  });

  test('get what a process that was killed after its commit has left', async () => {
    const { cursor } = (await world.call<FeedPageResponse>('GET', '/v1/events?after=latest')).body;
    const waiting = world.call<Page<FeedEventResponse>>('GET', `/v1/events?after=${cursor}`, { wait: 60 });
    await leaveEvents(world, 2_500);
    expect(await visible()).toEqual([]);
    await world.settle();
    expect((await waiting).body.items[0]).toMatchObject({ subject: 'clients/c-1' });
    const read: string[] = [];
    for (let items: FeedEventResponse[] = []; read.length === 0 || items.length > 0; ) {
      ({ items } = await readPage(`limit=200&after=${read.at(-1) ?? 0}`));
      read.push(...items.map((event) => event.cursor));
    }
    expect(read).toEqual(Array.from({ length: 2_500 }, (_, at) => `1-${at + 1}`));
  });

  test('get later what could not be numbered after its commit', async () => {
    const failing = jest.spyOn(FeedNumbers.prototype, 'assign').mockRejectedValueOnce(new Error('away'));
    const event = { type: 'person.synced', subject: 'clients/c', data: {} } as const;
    await world.get(PrismaService).transaction((tx) => world.get(Feed).append(tx, event));
    await world.eventually('it has failed', () => failing.mock.calls.length > 0);
    expect(await visible()).toEqual([]);
    await world.settle();
    expect((await readPage('')).items).toHaveLength(1);
  });

  test('reach the end even if they repeat their first "after" with each cursor', async () => {
    await appendEvents(world, 25);
    const read: string[] = [];
    for (let cursor: string | null = ''; cursor !== null && read.length <= 25; ) {
      const page = await readPage(`after=0&limit=10${cursor && `&cursor=${cursor}`}`);
      read.push(...page.items.map(({ subject }) => subject));
      cursor = page.nextCursor;
    }
    expect(read).toEqual(Array.from({ length: 25 }, (_, at) => `clients/c-${at + 1}`));
  });
});
