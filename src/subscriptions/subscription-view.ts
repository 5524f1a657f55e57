import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock.js';
import type { FeedEventResponse, FeedPageResponse } from '../feed/feed.dto.js';
import { isCursorGone, numberOf, positionOf } from '../feed/feed-cursor.js';
import { FeedReader } from '../feed/feed-reader.js';
import { Sending } from '../sending/sending.js';
import { Attempts } from './push/attempts.repository.js';
import { cursorOfRow, type SubscriptionRow, stateOf, typesOf } from './push/subscription-row.js';
import type { SubscriptionResponse } from './subscriptions.dto.js';

/** Maximum pages in which the next event is looked for, of 1,000 events each if types are chosen. */
const MAX_PAGES = 5;

/** Shows subscriptions, with how far they are behind the feed, and their next events. */
@Injectable()
export class SubscriptionView {
  constructor(
    private readonly reader: FeedReader,
    private readonly attempts: Attempts,
    private readonly sending: Sending,
    private readonly clock: Clock,
  ) {}

  /**
   * The first event that the endpoint has not taken; undefined if there is none among the next 5,000.
   *
   * @returns `gone` if the feed no longer has all events after the cursor
   */
  async nextOf(row: SubscriptionRow): Promise<FeedEventResponse | undefined | 'gone'> {
    let after: string | null = cursorOfRow(row);
    for (let pages = 0; after !== null && pages < MAX_PAGES; pages += 1) {
      const page: FeedPageResponse | undefined = await this.reader
        .read(after, 1, { types: typesOf(row) })
        .catch((error: unknown) => {
          if (isCursorGone(error)) return undefined;
          throw error;
        });
      if (!page) return 'gone';
      if (page.items[0]) return page.items[0];
      after = page.nextCursor;
    }
    return undefined;
  }

  /** The view of a row for callers; never its secrets. */
  async of(row: SubscriptionRow): Promise<SubscriptionResponse> {
    const cursor = cursorOfRow(row);
    const head = await this.reader.head();
    const isSameEpoch = positionOf(head)?.epoch === positionOf(cursor)?.epoch;
    const behind = isSameEpoch ? Math.max(0, Number(numberOf(head) - numberOf(cursor))) : 0;
    const found = isSameEpoch && behind === 0 ? undefined : await this.nextOf(row);
    const next = found === 'gone' ? undefined : found;
    const last = row.attempts === 0n ? null : await this.attempts.newestOf(row);
    return {
      id: row.id,
      url: row.url,
      types: typesOf(row) ?? null,
      description: row.description,
      headers: row.headerNames,
      // The pushes find out only when they resume.
      state: found === 'gone' ? 'cursor-expired' : stateOf(row),
      pausedReason: row.paused,
      pausedAt: row.pausedAt,
      cursor,
      behind,
      next: next ? { cursor: next.cursor, type: next.type, at: next.at } : null,
      failures: row.failures,
      failingSince: row.failingSince,
      nextAttemptAt: next && row.failures > 0 && !this.sending.isHeldNow ? row.dueAt : null,
      lastAnswer: last && { at: last.at, status: last.status, fault: last.fault },
      deliveredAt: row.deliveredAt,
      formerSecretUntil: row.formerUntil && row.formerUntil > this.clock.now() ? row.formerUntil : null,
      createdAt: row.createdAt,
    };
  }
}
