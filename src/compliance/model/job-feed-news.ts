import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Feed } from '../../feed/feed.js';
import type { PendingFeedEvents } from '../../feed/feed-event.js';

/** Jobs of one transaction: their rows stay locked until its commit. */
const BATCH = 50;

/** What each end is called; of a job that has not ended the platform gave another answer than before. */
const NEWS: Record<string, PendingFeedEvents['type']> = {
  Completed: 'compliance.completed',
  Failed: 'compliance.failed',
};

/**
 * Tells the EHR how compliance jobs ended. It is noted on their rows first, for an event may come before the answer to
 * its job's submission, which says under which id the EHR knows the job: while one is under way, the end of a job that
 * nobody submitted here is not told yet.
 */
@Injectable()
export class JobFeedEvents {
  constructor(
    private readonly database: Database,
    private readonly feed: Feed,
  ) {}

  /** Appends to the feed what was noted and may be told, until nothing is left. */
  async tell(): Promise<void> {
    while ((await this.database.transaction((tx) => this.tellCompliance(tx))) === BATCH);
  }

  private async tellCompliance(tx: PoolClient): Promise<number> {
    const { rows } = await tx.query<{ id: string; job_id: string | null; state: string }>(
      `WITH untold AS (
         SELECT id FROM compliance_jobs WHERE news_at IS NOT NULL
           AND (submitted_at IS NOT NULL OR NOT EXISTS (
             SELECT 1 FROM compliance_jobs WHERE state = 'Requested'))
         ORDER BY news_at LIMIT $1 FOR UPDATE SKIP LOCKED)
       UPDATE compliance_jobs j SET news_at = NULL FROM untold WHERE j.id = untold.id RETURNING j.id, j.job_id, j.state`,
      [BATCH],
    );
    for (const { id, job_id: jobId, state } of rows) {
      const type = NEWS[state] ?? 'compliance.answered';
      await this.feed.append(tx, {
        type,
        subject: `compliance/jobs/${id}`,
        data: { jobId },
      } satisfies PendingFeedEvents);
    }
    return rows.length;
  }
}
