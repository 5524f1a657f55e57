import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { FeedEventResponse } from './feed.dto.js';
import { Feed } from './feed.js';
import { FEED_BATCH, FeedWatch } from './feed-watch.js';

/** Milliseconds after which a silent stream sends a comment, so that nothing between closes it. */
const SILENCE_MS = 15_000;

/** Waiting for news: by long polling and by server-sent events (WHATWG HTML §9.2). */
@Injectable()
export class FeedStream {
  constructor(
    private readonly feed: Feed,
    private readonly watch: FeedWatch,
  ) {}

  /** Reads the events behind a cursor, waiting for the first of them. @param seconds to wait at most */
  async await(after: string, limit: number, seconds: number, signal: AbortSignal): Promise<FeedEventResponse[]> {
    const events = await this.feed.read(after, limit);
    if (events.length > 0 || seconds === 0) return events;
    return (await this.watch.news(after, seconds * 1000, signal)).slice(0, limit);
  }

  /** A stream that sends each event once, in order, with its cursor as the event's id; it ends with the listener. */
  stream(after: string, signal: AbortSignal): Readable {
    return Readable.from(this.events(after, signal), { objectMode: false });
  }

  private async *events(after: string, signal: AbortSignal): AsyncGenerator<string> {
    let cursor = after;
    yield ': the feed\n\n';
    let events = await this.feed.read(cursor, FEED_BATCH);
    while (!signal.aborted) {
      for (const event of events) yield `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
      cursor = events.at(-1)?.cursor ?? cursor;
      if (events.length === FEED_BATCH) events = await this.feed.read(cursor, FEED_BATCH);
      else {
        events = await this.watch.news(cursor, SILENCE_MS, signal);
        if (events.length === 0 && !signal.aborted) yield ': still here\n\n';
      }
    }
  }
}
