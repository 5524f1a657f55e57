import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { Wait } from '../http/request/waiting.js';
import type { FeedFilter, FeedPageResponse } from './feed.dto.js';
import { FeedBell } from './feed-bell.js';
import { FeedReader } from './feed-reader.js';

/** How often to look for events without a notification. */
const POLL_MS = 2_000;

/** How long a reader rests that was woken for events which its filter leaves out: others may write them all the time. */
const REST_MS = 1_000;

/** Readers that wait for events. */
@Injectable()
export class LongPoll {
  constructor(
    private readonly feed: FeedReader,
    private readonly bell: FeedBell,
  ) {}

  /**
   * Reads a page, and waits for its first event.
   *
   * @param after a cursor, `OLDEST` or `LATEST`
   * @throws {Problem} 410 `cursor-gone`
   */
  async read(after: string, limit: number, wait: Wait, filter: FeedFilter = {}): Promise<FeedPageResponse> {
    const endMs = performance.now() + wait.seconds * 1000;
    const { signal } = wait;
    let wasWoken = false;
    for (let from = after; ; ) {
      const heard = this.bell.rings;
      const page = await this.feed.read(from, limit, filter);
      const leftMs = endMs - performance.now();
      if (page.items.length > 0 || leftMs <= 0 || signal.aborted) return page;
      from = page.cursor;
      if (page.nextCursor !== null) continue;
      if (wasWoken && (filter.types ?? filter.subject) !== undefined)
        await delay(Math.min(leftMs, REST_MS), undefined, { signal }).catch(() => undefined);
      await this.news(heard, Math.min(leftMs, POLL_MS), signal);
      wasWoken = this.bell.rings !== heard;
    }
  }

  /**
   * Resolves at the next ring, when the time is over, or when the signal aborts.
   *
   * @param heard the rings before the read: later ones may have announced events that it lacks
   */
  private news(heard: number, ms: number, signal: AbortSignal): Promise<void> {
    this.bell.listen();
    if (this.bell.rings !== heard || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timeout);
        stopHearing();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timeout = setTimeout(end, ms);
      const stopHearing = this.bell.onRing(end);
      signal.addEventListener('abort', end);
    });
  }
}
