import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { PendingRefreshesResponse } from '../model/session-view.js';
import { SessionsRepository } from '../model/sessions.repository.js';

/** Rows made due by one statement, so that their locks do not delay events for long. */
const BATCH = 500;

/** Makes sessions due on request. Faults belong to earlier fetches, and one that was given up is fetched again. */
@Injectable()
export class RefreshesRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly sessions: SessionsRepository,
  ) {}

  /** Makes one session due now. @returns the number of sessions: 0 if the platform's id is unknown */
  async one(id: string): Promise<number> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.sessions.lockExisting(tx, id);
      if (row.sessionId === null) return 0;
      const again = { changes: row.changes + 1, failures: 0, fault: null, retryAt: null, urgent: true };
      await this.sessions.save(tx, row, again);
      return 1;
    });
  }

  /**
   * Makes every session due that had an event, was fetched or changed since the given time, after those with events.
   *
   * @returns the number of sessions
   */
  async since(since: Date): Promise<number> {
    let count = 0;
    for (let after = NO_ID; ; ) {
      const where = { id: { gt: after }, sessionId: { not: null }, OR: changedSince(since) };
      const ids = await this.prisma.session.findMany({
        where,
        select: { id: true },
        orderBy: { id: 'asc' },
        take: BATCH,
      });
      const last = ids.at(-1);
      if (!last) return count;
      after = last.id;
      count += await this.prisma.transaction(
        (tx) => tx.$executeRaw`
          WITH locked AS (SELECT id FROM sessions WHERE id = ANY (${ids.map(({ id }) => id)}::uuid[]) ORDER BY id FOR NO KEY UPDATE)
          UPDATE sessions SET changes = changes + 1, failures = 0, fault = NULL, retry_at = NULL, due_at = clock_timestamp(),
            urgent = due_at IS NOT NULL AND urgent AND changes > fetched_changes
          WHERE id = ANY (ARRAY(SELECT id FROM locked))`,
      );
    }
  }

  /** Counts the sessions with changes that no fetch has answered. @param id counts only this one: our id */
  async pending(id?: string): Promise<PendingRefreshesResponse> {
    const one = id === undefined ? Prisma.empty : Prisma.sql`AND id = ${id}::uuid`;
    const [counts] = await this.prisma.$queryRaw<[PendingRefreshesResponse]>`
      SELECT count(*) FILTER (WHERE fault IS NULL)::int AS pending, count(fault)::int AS failing FROM sessions
      WHERE changes > fetched_changes AND due_at IS NOT NULL ${one}`;
    return counts;
  }
}

const NO_ID = '00000000-0000-0000-0000-000000000000';

const changedSince = (since: Date) => [{ updatedAt: { gte: since } }, { fetchedAt: { gte: since } }];
