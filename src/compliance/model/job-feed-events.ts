import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Feed } from '../../feed/feed.js';
import type { PendingFeedEvents } from '../../feed/feed-event.js';
import { PendingEventsPublisher } from '../../feed/pending-events.publisher.js';

/** What each end is called; of a job that has not ended the platform gave another answer than before. */
const TYPE_OF: Record<string, PendingFeedEvents['type']> = {
  Completed: 'compliance.completed',
  Failed: 'compliance.failed',
};

/** The feed events of compliance jobs. While a submission is under way, an end that fits none here is not published. */
@Injectable()
export class JobFeedEvents extends PendingEventsPublisher {
  constructor(database: Database, feed: Feed) {
    super(database, feed);
  }

  protected override async take(tx: PoolClient, limit: number): Promise<PendingFeedEvents[][]> {
    const { rows } = await tx.query<{ id: string; job_id: string | null; state: string }>(
      `WITH pending AS (
         SELECT id FROM compliance_jobs WHERE pending_events_at IS NOT NULL
           AND (submitted_at IS NOT NULL OR NOT EXISTS (
             SELECT 1 FROM compliance_jobs WHERE state = 'Requested'))
         ORDER BY pending_events_at LIMIT $1 FOR UPDATE SKIP LOCKED)
       UPDATE compliance_jobs j SET pending_events_at = NULL FROM pending WHERE j.id = pending.id
       RETURNING j.id, j.job_id, j.state`,
      [limit],
    );
    return rows.map(({ id, job_id: jobId, state }) => [
      { type: TYPE_OF[state] ?? 'compliance.answered', subject: `compliance/jobs/${id}`, data: { jobId } },
    ]);
  }
}
