import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { FeedEventResponse } from './feed.dto.js';
import type { Feed } from './feed.js';
import { FeedStream } from './feed-stream.js';
import { FeedWatch } from './feed-watch.js';

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

describe('many who wait for news', () => {
  const gone = new AbortController();
  const feed = new CountedFeed();
  const watch = new FeedWatch(feed as unknown as Feed);
  const stream = new FeedStream(feed as unknown as Feed, watch);
  afterAll(() => gone.abort());

  it('share one look at the feed, and each is told each event once', async () => {
    const told: string[][] = [];
    const listening = new AbortController();
    setMaxListeners(0, listening.signal);
    for (let listener = 0; listener < LISTENERS; listener++) {
      const heard: string[] = [];
      told.push(heard);
      stream.stream('0', listening.signal).on('data', (text: Buffer) => {
        const id = /^id: (\d+)$/m.exec(String(text))?.[1];
        if (id !== undefined) heard.push(id);
      });
    }
    await until(() => feed.reads >= LISTENERS);
    const before = feed.reads;
    for (let cursor = 1; cursor <= 3; cursor++) {
      feed.events.push(event(cursor));
      await until(() => told.every((heard) => heard.length >= cursor));
    }
    expect(told.every((heard) => heard.join() === '1,2,3')).toBe(true);
    // Each event was found by one look; a slow machine looks some more times in between.
    expect(feed.reads - before).toBeLessThan(LISTENERS);
    listening.abort();
  });

  it('are told what is news to them, whoever is behind', async () => {
    const [early, late] = [watch.news('1', 60_000, gone.signal), watch.news('2', 60_000, gone.signal)];
    const cursors = (events: FeedEventResponse[]) => events.map(({ cursor }) => cursor);
    expect(cursors(await early)).toEqual(['2', '3']);
    expect(cursors(await late)).toEqual(['3']);
  });

  it('are told of nothing when their time is over or they are gone', async () => {
    expect(await watch.news('3', 1, gone.signal)).toEqual([]);
    expect(await watch.news('3', 60_000, AbortSignal.abort())).toEqual([]);
  });

  it('are told when the feed can not be read', async () => {
    feed.fault = new Error('away');
    await expect(watch.news('3', 60_000, new AbortController().signal)).rejects.toBe(feed.fault);
  });
});
