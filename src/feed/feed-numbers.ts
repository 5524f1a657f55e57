import { Injectable } from '@nestjs/common';
import { LOCKS } from '../database/advisory-locks.js';
import { PrismaService } from '../database/prisma.service.js';

/** Maximum events of one transaction, which holds the lock. */
const BATCH = 1_000;

/**
 * Numbers committed events in the order in which they became visible. Numbers that writers draw themselves would let readers
 * miss events, because transactions commit in another order than they write.
 */
@Injectable()
export class FeedNumbers {
  constructor(private readonly prisma: PrismaService) {}

  /** True if a committed event has no number. ORDER BY selects the partial index. */
  async isPending(): Promise<boolean> {
    const pending = await this.prisma.$queryRaw<unknown[]>`
      SELECT 1 AS one FROM feed_events WHERE cursor IS NULL ORDER BY id LIMIT 1`;
    return pending.length > 0;
  }

  /** Numbers every committed event. */
  async assign(): Promise<void> {
    while ((await this.isPending()) && (await this.assignBatch()) === BATCH);
  }

  private assignBatch(): Promise<number> {
    return this.prisma.transaction(async (tx) => {
      // A separate statement, because the next one must see what the last holder of the lock committed.
      await tx.$executeRaw`SELECT pg_advisory_xact_lock(${LOCKS.feedNumbers})`;
      return tx.$executeRaw`
        UPDATE feed_events f SET cursor = last.cursor + fresh.place
        FROM (SELECT greatest((SELECT max(cursor) FROM feed_events), (SELECT pruned_to FROM feed_state), 0) AS cursor) AS last,
          (SELECT id, row_number() OVER (ORDER BY id) AS place FROM
            (SELECT id FROM feed_events WHERE cursor IS NULL ORDER BY id LIMIT ${BATCH}) AS oldest) AS fresh
        WHERE f.id = fresh.id`;
    });
  }
}
