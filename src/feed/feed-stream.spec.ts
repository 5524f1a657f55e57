import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { SentTogether } from '../access/guard/event-streams.js';
import type { FeedEventResponse } from './feed.dto.js';
import type { Feed } from './feed.js';
import { FeedStream } from './feed-stream.js';

const LISTENERS = 150;

const event = (cursor: number): FeedEventResponse => ({
  cursor: String(cursor),
  type: 'person.synced',
  at: new Date('2027-01-15T08:00:00Z'),
  subject: 'clients/c',
  data: {},
});

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await delay(5);
};

/** A feed in memory that counts how often it is read. */
class CountedFeed {
  readonly events: FeedEventResponse[] = [];
  reads = 0;
  fault: Error | undefined;

  async read(after: string, limit: number): Promise<FeedEventResponse[]> {
    this.reads += 1;
    if (this.fault) throw this.fault;
    return this.events.filter(({ cursor }) => Number(cursor) > Number(after)).slice(0, limit);
  }
}

async function collect(events: AsyncIterable<SentTogether>, ids: string[]): Promise<void> {
  for await (const sent of events) ids.push(...sent.flatMap(({ id }) => id ?? []));
}

describe('many readers that wait', () => {
  const gone = new AbortController();
  const feed = new CountedFeed();
  const stream = new FeedStream(feed as unknown as Feed);
  afterAll(() => gone.abort());

  it('share one query, and each gets each event once', async () => {
    const received: string[][] = [];
    const listening = new AbortController();
    setMaxListeners(0, listening.signal);
    for (let listener = 0; listener < LISTENERS; listener++) {
      const ids: string[] = [];
      received.push(ids);
      void collect(stream.stream('0', listening.signal), ids);
    }
    await until(() => feed.reads >= LISTENERS);
    const before = feed.reads;
    for (let cursor = 1; cursor <= 3; cursor++) {
      feed.events.push(event(cursor));
      await until(() => received.every((ids) => ids.length >= cursor));
    }
    expect(received.every((ids) => ids.join() === '1,2,3')).toBe(true);
    // Each event was found by one query; a slow machine polls some more times in between.
    expect(feed.reads - before).toBeLessThan(LISTENERS);
    listening.abort();
  });

  it('get what is new to them, however far behind they are', async () => {
    const [early, late] = [stream.next('1', 60_000, gone.signal), stream.next('2', 60_000, gone.signal)];
    const cursors = (events: FeedEventResponse[]) => events.map(({ cursor }) => cursor);
    expect(cursors(await early)).toEqual(['2', '3']);
    expect(cursors(await late)).toEqual(['3']);
  });

  it('get nothing when their time is over or they are gone', async () => {
    expect(await stream.next('3', 1, gone.signal)).toEqual([]);
    expect(await stream.next('3', 60_000, AbortSignal.abort())).toEqual([]);
  });

  it('get the error when the feed can not be read', async () => {
    feed.fault = new Error('away');
    await expect(stream.next('3', 60_000, new AbortController().signal)).rejects.toBe(feed.fault);
  });
});
