import { setMaxListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import type { SentTogether } from '../access/guard/event-streams.js';
import type { FeedEventResponse, FeedFilter, FeedPageResponse } from './feed.dto.js';
import type { FeedBell } from './feed-bell.js';
import { numberOf } from './feed-cursor.js';
import type { FeedReader } from './feed-reader.js';
import { FeedStream } from './feed-stream.js';

const LISTENERS = 150;

const event = (number: number, type: FeedEventResponse['type'] = 'person.synced'): FeedEventResponse => ({
  cursor: `1-${number}`,
  type,
  at: new Date('2027-01-15T08:00:00Z'),
  subject: 'clients/c',
  data: {},
});

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await turn();
};

/** A feed in memory that counts how often it is read. */
class CountedFeed {
  readonly events: FeedEventResponse[] = [];
  reads = 0;
  fault: Error | undefined;

  async read(after: string, limit: number, { types }: FeedFilter): Promise<FeedPageResponse> {
    this.reads += 1;
    if (this.fault) throw this.fault;
    const items = this.events.filter(({ cursor }) => numberOf(cursor) > numberOf(after)).slice(0, limit);
    const cursor = items.at(-1)?.cursor ?? (after === '0' ? '1-0' : after);
    return { items: await this.filter(items, { types }), cursor, nextCursor: null };
  }

  async filter(items: FeedEventResponse[], { types }: FeedFilter): Promise<FeedEventResponse[]> {
    return items.filter(({ type }) => types?.includes(type) ?? true);
  }
}

async function collect(events: AsyncIterable<SentTogether>, ids: string[]): Promise<void> {
  for await (const sent of events) ids.push(...sent.flatMap(({ id }) => id ?? []));
}

describe('waiting readers', () => {
  let ring = () => {};
  const bell = {
    onRing: (hear: () => void) => {
      ring = hear;
    },
    listen: () => undefined,
  };
  const gone = new AbortController();
  const feed = new CountedFeed();
  const stream = new FeedStream(feed as unknown as FeedReader, bell as unknown as FeedBell);
  const next = (after: string, ms = 60_000, signal = gone.signal, filter: FeedFilter = {}) =>
    stream.next({ after, heard: -1, filter }, ms, signal).then(({ page }) => page);
  const cursors = (page: FeedPageResponse) => page.items.map(({ cursor }) => cursor);
  afterAll(() => gone.abort());

  it('share one query per notification, and each gets each event once', async () => {
    const received: string[][] = [];
    const listening = new AbortController();
    setMaxListeners(0, listening.signal);
    for (let listener = 0; listener < LISTENERS; listener += 1) {
      const ids: string[] = [];
      received.push(ids);
      void collect(await stream.open('0', listening.signal), ids);
    }
    await until(() => received.every((ids) => ids.length === 1));
    await turn();
    const before = feed.reads;
    for (let number = 1; number <= 3; number += 1) {
      feed.events.push(event(number));
      ring();
      await until(() => received.every((ids) => ids.length > number));
      await turn();
    }
    expect(new Set(received.map((ids) => ids.join()))).toEqual(new Set(['1-0,1-1,1-2,1-3']));
    // A slow machine may poll, too.
    expect(feed.reads - before).toBeLessThan(10);
    listening.abort();
  });

  it('get the events after their cursor, regardless of their lag', async () => {
    const [early, late] = [next('1-1'), next('1-2')];
    expect(cursors(await early)).toEqual(['1-2', '1-3']);
    expect(cursors(await late)).toEqual(['1-3']);
  });

  it('get an event that was announced between their read and their wait', async () => {
    const open = stream.await('1-3', 10, 60, gone.signal);
    feed.events.push(event(4));
    ring();
    expect(cursors(await open)).toEqual(['1-4']);
  });

  it('get nothing when the time is over or they disconnect, but the position past what they skipped', async () => {
    const filter: FeedFilter = { types: ['person.deleted'] };
    expect(await next('1-3', 50, gone.signal, filter)).toEqual({ items: [], cursor: '1-4', nextCursor: null });
    expect(await next('1-3', 60_000, AbortSignal.abort())).toMatchObject({ items: [], cursor: '1-3' });
  });

  it('resume after skipped events: a filtered stream sends their position without an event', async () => {
    const closing = new AbortController();
    const sent = (await stream.open('1-3', closing.signal, { types: ['person.deleted'] }))[Symbol.asyncIterator]();
    expect((await sent.next()).value).toEqual([{ id: '1-4' }]);
    const following = sent.next();
    feed.events.push(event(5, 'person.deleted'), event(6));
    ring();
    expect((await following).value).toEqual([
      expect.objectContaining({ id: '1-5', event: 'person.deleted' }),
      { id: '1-6' },
    ]);
    closing.abort();
  });

  it('get the error when the feed cannot be read', async () => {
    feed.fault = new Error('unavailable');
    await expect(next('1-6')).rejects.toBe(feed.fault);
  });
});
