import type { PoolClient } from 'pg';
import type { Database } from '../database/database.js';
import type { Feed } from './feed.js';
import type { PendingFeedEvents } from './feed-event.js';

/** Rows of one transaction: they stay locked until its commit. */
const BATCH = 50;

/**
 * Publishes events that are pending on the rows of a table. What changes a row only notes them there, for they may have
 * to wait: while a request is on its way that a row may belong to, its answer decides under which id the EHR knows it.
 */
export abstract class PendingEventsPublisher {
  constructor(
    protected readonly database: Database,
    private readonly feed: Feed,
  ) {}

  /** Appends to the feed what is pending and may be published, until nothing is left. */
  async publish(): Promise<void> {
    while ((await this.database.transaction((tx) => this.publishBatch(tx))) === BATCH);
  }

  /** Takes the pending events from at most so many rows. @returns the events of each row */
  protected abstract take(tx: PoolClient, rows: number): Promise<PendingFeedEvents[][]>;

  private async publishBatch(tx: PoolClient): Promise<number> {
    const rows = await this.take(tx, BATCH);
    for (const event of rows.flat()) await this.feed.append(tx, event);
    return rows.length;
  }
}
