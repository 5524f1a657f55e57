import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { KEEP_ALIVE_MS, type SentTogether } from '../access/guard/event-streams.js';
import type { FeedEventResponse } from './feed.dto.js';
import { Feed } from './feed.js';

const POLL_MS = 250;

/** Events that are read at once. */
const BATCH = 200;

/** A reader that waits for the first event behind a cursor. */
interface Waiter {
  after: bigint;
  resolve(events: FeedEventResponse[]): void;
  reject(error: unknown): void;
}

/** Waiting for events, by long polling and by a stream: one query for all readers of this process, however many wait. */
@Injectable()
export class FeedStream {
  private readonly waiting = new Set<Waiter>();
  private polling = false;

  constructor(private readonly feed: Feed) {}

  /** Reads the events behind a cursor, waiting for the first of them. @param seconds to wait at most */
  async await(after: string, limit: number, seconds: number, signal: AbortSignal): Promise<FeedEventResponse[]> {
    const events = await this.feed.read(after, limit);
    if (events.length > 0 || seconds === 0) return events;
    return (await this.next(after, seconds * 1000, signal)).slice(0, limit);
  }

  /** Each event once, in order, with its cursor as the event's id, until the signal aborts. */
  async *stream(after: string, signal: AbortSignal): AsyncGenerator<SentTogether> {
    let cursor = after;
    yield [];
    let events = await this.feed.read(cursor, BATCH);
    while (!signal.aborted) {
      if (events.length > 0) yield events.map((event) => ({ id: event.cursor, event: event.type, data: event }));
      cursor = events.at(-1)?.cursor ?? cursor;
      if (events.length === BATCH) events = await this.feed.read(cursor, BATCH);
      else {
        events = await this.next(cursor, KEEP_ALIVE_MS, signal);
        if (events.length === 0 && !signal.aborted) yield [];
      }
    }
  }

  /**
   * Waits for the first events behind a cursor that has been read to the end.
   *
   * @param ms milliseconds to wait at most
   * @returns the events; none when the time is over or the signal aborted
   */
  next(after: string, ms: number, signal: AbortSignal): Promise<FeedEventResponse[]> {
    if (signal.aborted) return Promise.resolve([]);
    return new Promise<FeedEventResponse[]>((resolve, reject) => {
      const waiter: Waiter = {
        after: BigInt(after),
        resolve: (events) => end(() => resolve(events)),
        reject: (error) => end(() => reject(error)),
      };
      const abort = () => waiter.resolve([]);
      const timer = setTimeout(abort, ms);
      const end = (settle: () => void) => {
        this.waiting.delete(waiter);
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        settle();
      };
      signal.addEventListener('abort', abort);
      this.waiting.add(waiter);
      if (!this.polling) void this.pollWhileNeeded();
    });
  }

  private async pollWhileNeeded(): Promise<void> {
    this.polling = true;
    while (this.waiting.size > 0) {
      await delay(POLL_MS);
      await this.poll([...this.waiting]);
    }
    this.polling = false;
  }

  /** Reads behind the smallest cursor, and gives each reader what is behind its own. */
  private async poll(waiting: readonly Waiter[]): Promise<void> {
    const [least] = waiting.map(({ after }) => after).sort((a, b) => Number(a - b));
    if (least === undefined) return;
    try {
      const events = await this.feed.read(String(least), BATCH);
      for (const waiter of waiting) {
        const fresh = events.filter(({ cursor }) => BigInt(cursor) > waiter.after);
        if (fresh.length > 0) waiter.resolve(fresh);
      }
    } catch (error) {
      for (const waiter of waiting) waiter.reject(error);
    }
  }
}
