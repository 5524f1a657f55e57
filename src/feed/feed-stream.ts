import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { waitUntil } from '../http/wait-until.js';
import { Feed } from './feed.js';
import type { FeedEvent } from './feed-event.js';

/** Milliseconds between two looks for a listener. */
const LOOK_MS = 250;

/** Milliseconds after which a silent stream sends a comment, so that nothing between closes it. */
const SILENCE_MS = 15_000;

/** Events that a stream reads at once. */
const BATCH = 200;

/** Waiting for news: by long polling and by server-sent events (WHATWG HTML §9.2). */
@Injectable()
export class FeedStream {
  constructor(private readonly feed: Feed) {}

  /** Reads the events behind a cursor, waiting for the first of them. @param seconds to wait at most */
  async await(after: string, limit: number, seconds: number, signal: AbortSignal): Promise<FeedEvent[]> {
    return waitUntil(
      seconds,
      () => this.feed.read(after, limit),
      (events) => events.length > 0,
      signal,
    );
  }

  /** A stream that sends each event once, in order, with its cursor as the event's id; it ends with the listener. */
  stream(after: string, signal: AbortSignal): Readable {
    return Readable.from(this.events(after, signal), { objectMode: false });
  }

  private async *events(after: string, signal: AbortSignal): AsyncGenerator<string> {
    let cursor = after;
    let silentSince = performance.now();
    yield ': the feed\n\n';
    while (!signal.aborted) {
      const events = await this.feed.read(cursor, BATCH);
      for (const event of events) yield `id: ${event.cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
      cursor = events.at(-1)?.cursor ?? cursor;
      if (events.length > 0) silentSince = performance.now();
      else if (performance.now() - silentSince > SILENCE_MS) {
        silentSince = performance.now();
        yield ': still here\n\n';
      }
      if (events.length < BATCH) await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
