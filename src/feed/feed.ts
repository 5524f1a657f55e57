import { Injectable } from '@nestjs/common';
import { prepared } from '../database/database.js';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import type { FeedType } from '../words/feed-types.js';
import { FeedBell } from './feed-bell.js';

/** An event that a transaction is about to append: ids and codes, never clinical text or a name. */
export interface PendingFeedEvents {
  type: FeedType;
  /** Its subject, as a path below /v1, e.g. `clients/c-1`. */
  subject: string;
  data: Record<string, string | number | boolean | null | string[]>;
}

/** The change feed, for its writers: what the EHR has to know, in the order in which it became visible. */
@Injectable()
export class Feed {
  constructor(
    private readonly prisma: PrismaService,
    private readonly bell: FeedBell,
  ) {}

  /** Appends events in a transaction, whose commit publishes them. */
  async append(tx: Tx, ...events: readonly PendingFeedEvents[]): Promise<void> {
    if (events.length === 0) return;
    // By pg, because a raw statement of Prisma costs three times as much, and each change of a person or session appends.
    const places = events.map((_, at) => `($${3 * at + 1}, clock_timestamp(), $${3 * at + 2}, $${3 * at + 3}::jsonb)`);
    const values = events.flatMap(({ type, subject, data }) => [type, subject, JSON.stringify(data)]);
    const insert = `INSERT INTO feed_events (type, at, subject, data) VALUES ${places.join(', ')}`;
    await this.prisma.sql(tx).query(prepared(insert, values));
    this.prisma.afterCommit(tx, this.bell.ring);
  }

  /**
   * Ends the validity of all cursors, because a restored database may give their numbers to other events. The time is
   * part of the epoch, because a second restore of one backup must not repeat the epoch of the first.
   */
  async raiseEpoch(tx: Tx): Promise<void> {
    await tx.$executeRaw`
      INSERT INTO feed_state AS s (epoch) VALUES (extract(epoch FROM clock_timestamp())::bigint)
      ON CONFLICT (id) DO UPDATE SET epoch = greatest(s.epoch + 1, excluded.epoch)`;
  }
}
