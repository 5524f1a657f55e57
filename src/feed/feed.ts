import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { FeedEventResponse } from './feed.dto.js';
import { FeedRepository } from './feed.repository.js';
import type { PendingFeedEvents } from './feed-event.js';

/** The change feed: what the EHR is told, in the order in which it became true. */
@Injectable()
export class Feed {
  constructor(private readonly repository: FeedRepository) {}

  /** Adds news, which stands or falls with the transaction. */
  async append(tx: PoolClient, news: PendingFeedEvents): Promise<void> {
    await this.repository.append(tx, news);
  }

  /**
   * The events behind a cursor, in order: each once, and none ever comes to stand before one that was read.
   *
   * @param after `0` for the first
   */
  async read(after: string, limit: number): Promise<FeedEventResponse[]> {
    if (await this.repository.hasNew()) await this.repository.giveCursors();
    return this.repository.read(after, limit);
  }
}
