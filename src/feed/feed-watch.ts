import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import type { FeedEventResponse } from './feed.dto.js';
import { Feed } from './feed.js';

/** Milliseconds between two looks. */
const LOOK_MS = 250;

/** Events that are read at once. */
export const FEED_BATCH = 200;

/** Somebody who waits for the first event behind a cursor. */
interface Waiter {
  after: bigint;
  tell(events: FeedEventResponse[]): void;
  fail(error: unknown): void;
}

/** Looks for news on behalf of everybody in this process who waits for some: one look, however many wait. */
@Injectable()
export class FeedWatch {
  private readonly waiting = new Set<Waiter>();
  private looking = false;

  constructor(private readonly feed: Feed) {}

  /**
   * Waits for the first events behind a cursor that has been read to the end.
   *
   * @param ms milliseconds to wait at most
   * @returns the events; none when the time is over or the signal aborted
   */
  news(after: string, ms: number, signal: AbortSignal): Promise<FeedEventResponse[]> {
    if (signal.aborted) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.waiting.delete(waiter);
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
      };
      const waiter: Waiter = {
        after: BigInt(after),
        tell: (events) => {
          leave();
          resolve(events);
        },
        fail: (error) => {
          leave();
          reject(error);
        },
      };
      const giveUp = () => waiter.tell([]);
      const timer = setTimeout(giveUp, ms);
      signal.addEventListener('abort', giveUp);
      this.waiting.add(waiter);
      if (!this.looking) void this.lookOn();
    });
  }

  private async lookOn(): Promise<void> {
    this.looking = true;
    while (this.waiting.size > 0) {
      await delay(LOOK_MS);
      await this.look([...this.waiting]);
    }
    this.looking = false;
  }

  /** Reads behind whoever is furthest behind, and tells each what is news to it. */
  private async look(waiting: readonly Waiter[]): Promise<void> {
    const [least] = waiting.map(({ after }) => after).sort((a, b) => Number(a - b));
    if (least === undefined) return;
    try {
      const events = await this.feed.read(String(least), FEED_BATCH);
      for (const waiter of waiting) {
        const fresh = events.filter(({ cursor }) => BigInt(cursor) > waiter.after);
        if (fresh.length > 0) waiter.tell(fresh);
      }
    } catch (error) {
      for (const waiter of waiting) waiter.fail(error);
    }
  }
}
