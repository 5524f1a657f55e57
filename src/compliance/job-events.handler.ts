import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../database/database.js';
import { Feed, PendingEventsPublisher, type PendingFeedEvents } from '../feed/feed.js';
import { joinTraces, tracesNow } from '../queue/due-rows/traces.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { type EventHandler, type Handled, HandlesEvents, type InboxEvent } from '../webhooks/process/event-handlers.js';
import type { JobEnd } from './job.js';

/** The feed event of each end; a new answer about a job that has not ended is `compliance.answered`. */
const TYPE_OF: Record<string, PendingFeedEvents['type']> = {
  Completed: 'compliance.completed',
  Failed: 'compliance.failed',
};

/** The feed events of compliance jobs. While a submission is in flight, an end that could belong to it is held back. */
@Injectable()
export class JobFeedEvents extends PendingEventsPublisher {
  constructor(database: Database, feed: Feed) {
    super(database, feed);
  }

  /** The poll that publishes events whose publication was interrupted or had to wait. */
  readonly poll = this.pollOf('compliance feed events', 'compliance_jobs');

  protected override async take(tx: pg.PoolClient, limit: number): Promise<PendingFeedEvents[][]> {
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

/**
 * Records the end of compliance jobs, known or unknown (spec, Processing API events). Completed overrides Failed, so that
 * the order of events does not matter, and only a new end is published. Every event of a smart edit job is published.
 */
@Injectable()
@HandlesEvents('COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED', 'SMART_EDIT_JOB_COMPLETED', 'SMART_EDIT_JOB_FAILED')
export class JobEventsHandler implements EventHandler {
  constructor(
    private readonly feed: Feed,
    private readonly feedEvents: JobFeedEvents,
    private readonly notifier: QueueNotifier,
  ) {}

  async handle({ eventType, body }: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    const { jobId } = body.payload as { jobId: string };
    const end = eventType.endsWith('_COMPLETED') ? 'Completed' : 'Failed';
    if (eventType.startsWith('SMART_EDIT')) {
      const type = end === 'Completed' ? 'smart-edit.completed' : 'smart-edit.failed';
      await this.feed.append(tx, { type, subject: `smart-edit/jobs/${encodeURIComponent(jobId)}`, data: { jobId } });
    } else await recordComplianceEnd(tx, jobId, end);
    return 'processed';
  }

  async afterCommit(): Promise<void> {
    this.notifier.notify('compliance', 'ended');
    await this.feedEvents.publish();
  }
}

/** Also makes the result due, and ends the lease of a lookup in flight. Jobs removed by retention stay removed. */
async function recordComplianceEnd(tx: pg.PoolClient, jobId: string, end: JobEnd): Promise<void> {
  await tx.query(
    `INSERT INTO compliance_jobs AS known (id, job_id, state, ended_at, due_at, pending_events_at, traceparents)
     VALUES (gen_random_uuid(), $1, $2, clock_timestamp(), clock_timestamp(), clock_timestamp(), $3)
     ON CONFLICT (job_id) DO UPDATE SET
       state = CASE WHEN known.state = 'Completed' THEN 'Completed' ELSE excluded.state END,
       pending_events_at = CASE WHEN known.state IN ('Completed', excluded.state) THEN known.pending_events_at
                                ELSE excluded.pending_events_at END,
       ended_at = coalesce(known.ended_at, excluded.ended_at), due_at = excluded.due_at,
       result = CASE WHEN known.state IN ('Completed', excluded.state) THEN known.result END,
       lease_owner = NULL, lease_safe_at = NULL, ${joinTraces('known', 'excluded.traceparents')}, updated_at = clock_timestamp()
     WHERE known.removed_at IS NULL`,
    [jobId, end, tracesNow()],
  );
}
