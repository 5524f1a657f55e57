import { Injectable } from '@nestjs/common';
import { KEEP_ALIVE_MS, type SentTogether } from '../access/guard/event-streams.js';
import { Problem } from '../http/problem/problem.js';
import type { FeedFilter, FeedPageResponse } from './feed.dto.js';
import { FeedBell } from './feed-bell.js';
import { compareCursors, numberOf } from './feed-cursor.js';
import { FeedReader } from './feed-reader.js';

/** How often to look for events without a notification. */
const POLL_MS = 2_000;

/** Events that one query reads for all waiting readers. */
const BATCH = 200;

/** A page, and the number of rings before it was read: later rings may announce events that it lacks. */
interface Read {
  page: FeedPageResponse;
  heard: number;
}

/** A reader that waits for the first matching event after a cursor. */
interface Waiter {
  /** Moves past events that do not match. */
  after: string;
  heard: number;
  readonly filter: FeedFilter;
  resolve(read: Read): void;
  reject(error: unknown): void;
}

/** Waits for events, for long polls and streams. One query reads for all readers of this process. */
@Injectable()
export class FeedStream {
  private readonly waiting = new Set<Waiter>();
  private readonly poll = coalesced(() => this.pollOnce());
  private timer: NodeJS.Timeout | undefined;
  private rings = 0;

  constructor(
    private readonly feed: FeedReader,
    private readonly bell: FeedBell,
  ) {
    bell.onRing(() => {
      this.rings += 1;
      if (this.waiting.size > 0) this.poll();
    });
  }

  /**
   * Reads the events after a position, and waits for the first one.
   *
   * @param seconds the maximum wait
   * @throws {Problem} 410 `cursor-gone`
   */
  async await(
    after: string,
    limit: number,
    seconds: number,
    signal: AbortSignal,
    filter: FeedFilter = {},
  ): Promise<FeedPageResponse> {
    const endMs = performance.now() + seconds * 1000;
    for (let from = after; ; ) {
      const { page, heard } = await this.read(from, limit, filter);
      const leftMs = endMs - performance.now();
      if (page.items.length > 0 || leftMs <= 0 || signal.aborted) return page;
      from = page.cursor;
      if (page.nextCursor !== null) continue;
      return firstOf((await this.next({ after: from, heard, filter }, leftMs, signal)).page, limit);
    }
  }

  /**
   * Opens a stream of events, with their cursors as ids, that ends when the signal aborts.
   *
   * @throws {Problem} 410 `cursor-gone`
   */
  async open(after: string, signal: AbortSignal, filter: FeedFilter = {}): Promise<AsyncIterable<SentTogether>> {
    return this.stream(await this.read(after, BATCH, filter), filter, signal);
  }

  private async *stream(first: Read, filter: FeedFilter, signal: AbortSignal): AsyncGenerator<SentTogether> {
    let sent: string | undefined;
    for (let { page, heard } = first; !signal.aborted; ) {
      const events = page.items.map((event) => ({ id: event.cursor, event: event.type, data: event }));
      // Readers also resume after events that the filter left out.
      const position = (events.at(-1)?.id ?? sent) === page.cursor ? [] : [{ id: page.cursor }];
      yield [...events, ...position];
      sent = page.cursor;
      const isEnd = page.nextCursor === null;
      ({ page, heard } = isEnd
        ? await this.next({ after: sent, heard, filter }, KEEP_ALIVE_MS, signal)
        : await this.read(sent, BATCH, filter));
    }
  }

  private async read(after: string, limit: number, filter: FeedFilter): Promise<Read> {
    const heard = this.rings;
    return { page: await this.feed.read(after, limit, filter), heard };
  }

  /**
   * Waits for the first matching events of a reader that has read to the end.
   *
   * @param ms the maximum wait
   * @returns the events; none, with the position read up to, when the time is over or the signal aborts
   */
  next(from: Pick<Waiter, 'after' | 'heard' | 'filter'>, ms: number, signal: AbortSignal): Promise<Read> {
    return new Promise<Read>((resolve, reject) => {
      const waiter: Waiter = {
        ...from,
        resolve: (read) => end(() => resolve(read)),
        reject: (error) => end(() => reject(error)),
      };
      const giveUp = () => {
        const page = { items: [], cursor: waiter.after, nextCursor: null };
        waiter.resolve({ page, heard: waiter.heard });
      };
      const timeout = setTimeout(giveUp, ms);
      const end = (settle: () => void) => {
        this.waiting.delete(waiter);
        clearTimeout(timeout);
        signal.removeEventListener('abort', giveUp);
        if (this.waiting.size === 0) this.stopPolling();
        settle();
      };
      this.waiting.add(waiter);
      if (signal.aborted) return giveUp();
      signal.addEventListener('abort', giveUp);
      this.startPolling();
      if (this.rings !== waiter.heard) this.poll();
    });
  }

  private startPolling(): void {
    this.bell.listen();
    this.timer ??= setInterval(() => {
      this.bell.listen();
      this.poll();
    }, POLL_MS);
  }

  private stopPolling(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Reads after the smallest cursor, and gives each reader what it waits for. @returns true if there is more */
  private async pollOnce(): Promise<boolean> {
    const waiting = [...this.waiting];
    const [least] = waiting.map(({ after }) => after).sort(compareCursors);
    if (least === undefined) return false;
    try {
      const read = await this.read(least, BATCH, {});
      await Promise.all(waiting.map((waiter) => this.give(waiter, read).catch(waiter.reject)));
      return read.page.nextCursor !== null;
    } catch (error) {
      // Only the smallest cursor can be gone.
      const failed = error instanceof Problem ? waiting.filter(({ after }) => after === least) : waiting;
      for (const waiter of failed) waiter.reject(error);
      return failed.length < waiting.length;
    }
  }

  private async give(waiter: Waiter, { page, heard }: Read): Promise<void> {
    const fresh = page.items.filter(({ cursor }) => numberOf(cursor) > numberOf(waiter.after));
    const items = await this.feed.filter(fresh, waiter.filter);
    if (items.length > 0) return waiter.resolve({ page: { ...page, items }, heard });
    if (fresh.length > 0) waiter.after = page.cursor;
    waiter.heard = heard;
  }
}

/** The first events of a page. */
function firstOf(page: FeedPageResponse, limit: number): FeedPageResponse {
  const items = page.items.slice(0, limit);
  const cursor = items.at(-1)?.cursor;
  return items.length === page.items.length || cursor === undefined ? page : { items, cursor, nextCursor: cursor };
}

/** Runs `work` once at a time, and again if it was asked for in the meantime or returned true. */
function coalesced(work: () => Promise<boolean>): () => void {
  let isWanted = false;
  let isRunning = false;
  const run = async () => {
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      if (await work()) isWanted = true;
    }
    isRunning = false;
  };
  return () => {
    isWanted = true;
    if (!isRunning) void run();
  };
}
