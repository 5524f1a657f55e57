import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { PrismaService } from '../database/prisma.service.js';
import { RELEASE } from '../due-rows/lease.js';
import { Feed } from '../feed/feed.js';
import { SubjectIds } from '../feed/subject-ids.js';
import { Contract } from '../platform/contract/contract.js';
import { rowOfEvent } from '../platform/send/request-rows.js';
import { settleRestoredRequests } from '../platform/send/restored-requests.js';
import { ATTEMPT_IN_FLIGHT, type RequestOutcomes } from '../platform/send/send-once.js';
import { Restores } from '../sending/restores.js';
import { openIfReadable } from '../vault/unreadable-value.js';
import { ComplianceSeal, JOB_TABLE, type JobEnd, type JobRow, LANES } from './job.js';
import { afterEvent, afterLongWait, factsOf, type JobFeedEvent } from './job-rules.js';

/** SQL assignments of a row that needs no further call. */
const NO_FURTHER_CALL = `fault = NULL, due_at = NULL, ${RELEASE}`;

/** Maximum time that an event of an unknown job waits for the answer to a submission, in seconds. */
const MAX_EVENT_WAIT_SECONDS = 5;

/** SQL condition: the end of a job has not been published, and no review was requested. */
const UNANNOUNCED = 'ended_at IS NOT NULL AND announced_at IS NULL AND review IS NULL';

/** SQL condition: the end of a job was published, and its result is still looked up without a review. */
const UNREAD = `lane = ${LANES.lookups} AND due_at IS NOT NULL AND ended_at IS NOT NULL AND announced_at IS NOT NULL
  AND review IS NULL AND result IS NULL`;
const REVIEW_AFTER = `interval '1 hour'`;

/** Stores the outcomes of jobs, from answers to their submissions, from events and by time. Publishes each end once. */
@Injectable()
export class JobOutcomes implements RequestOutcomes<JobRow, { jobId: string }> {
  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly feed: Feed,
    private readonly seal: ComplianceSeal,
    private readonly env: Env,
    private readonly contract: Contract,
    subjects: SubjectIds,
    restores: Restores,
  ) {
    settleRestoredRequests(restores, prisma, JOB_TABLE, 'created_at', this);
    subjects.registerRows('compliance/jobs', 'compliance_jobs');
  }

  async accepted(tx: PoolClient, row: JobRow, { jobId }: { jobId: string }): Promise<void> {
    const isSettled = await this.settle(tx, row, jobId, 'clock_timestamp()');
    if (!isSettled && row.state === 'Requested') await this.unknown(tx, row);
  }

  async rejected(tx: PoolClient, row: JobRow, message: string): Promise<void> {
    const sealed = this.seal.message.seal(row.id, message);
    await change(tx, row.id, `state = 'Rejected', message = $2, review = NULL, ${NO_FURTHER_CALL}`, sealed);
    const code = 'platform-rejected';
    await this.publish(tx, row, { type: 'compliance.failed', state: 'Rejected', hasResult: false, code });
  }

  async unknown(tx: PoolClient, row: JobRow): Promise<void> {
    const code = 'submission-unknown';
    await change(tx, row.id, `state = 'Unknown', review = $2, ${NO_FURTHER_CALL}`, code);
    await this.publish(tx, row, { type: 'compliance.needs-review', state: 'Unknown', hasResult: false, code });
  }

  /** Ends a job, so that it needs no further call. */
  abandon(tx: PoolClient, { id }: JobRow): Promise<void> {
    return change(tx, id, `state = 'Abandoned', ended_at = NULL, review = NULL, ${NO_FURTHER_CALL}`);
  }

  /**
   * Gives a submission the platform's id of its job. If an event made a row for the job first, that row takes the id and
   * the request of the submission. The submission's own row is deleted, unless an event made it for yet another job.
   *
   * @param own locked
   * @param acceptedAt SQL of when the platform's answer accepted the submission
   * @returns false if the job belongs to another submission
   */
  async settle(tx: PoolClient, own: JobRow, jobId: string, acceptedAt = 'NULL'): Promise<boolean> {
    const first = await rowOfEvent<JobRow>(tx, JOB_TABLE, own, jobId);
    if (first === 'taken') return false;
    if (first) {
      const request = openIfReadable(() => this.seal.request.open(own.id, own.request));
      const isOfOtherJob = own.id !== own.shownId && own.jobId !== null;
      if (!isOfOtherJob) await tx.query('DELETE FROM compliance_jobs WHERE id = $1', [own.id]);
      else await change(tx, own.id, 'shown_id = id, request = NULL, attempted_at = NULL, accepted_at = NULL');
      const set = `shown_id = $2, request = $3, attempted_at = $4, accepted_at = ${acceptedAt}`;
      await change(tx, first.id, set, own.shownId, this.seal.request.sealNullable(first.id, request), own.attemptedAt);
      return true;
    }
    const set = `state = 'Submitted', job_id = $2, accepted_at = ${acceptedAt}, ended_at = NULL, announced_at = NULL,
      review = NULL, fault = NULL, failures = 0, refused_at = NULL, lane = ${LANES.lookups},
      due_at = clock_timestamp() + $3 * interval '1 second', ${RELEASE}`;
    await change(tx, own.id, set, jobId, this.env.COMPLIANCE_REFRESH_AFTER_SECONDS);
    return true;
  }

  /** True while the answer to a submission may show that an event of an unknown job belongs to it. */
  async mayBelongToSubmission(tx: PoolClient, jobId: string, receivedAt: Date): Promise<boolean> {
    const { rowCount } = await tx.query(
      `SELECT FROM compliance_jobs WHERE ${ATTEMPT_IN_FLIGHT} AND attempted_at <= $2
         AND $2 > clock_timestamp() - interval '${MAX_EVENT_WAIT_SECONDS} seconds'
         AND NOT EXISTS (SELECT FROM compliance_jobs WHERE job_id = $1) LIMIT 1`,
      [jobId, receivedAt],
    );
    return rowCount === 1;
  }

  /** Stores the end that an event reports, of a job known or not, and makes its result due. */
  async recordEnd(tx: PoolClient, jobId: string, end: JobEnd, canReadEnds: boolean): Promise<void> {
    const { rows } = await tx.query<JobRow>(
      `INSERT INTO compliance_jobs AS t (id, shown_id, job_id, state)
       SELECT id, id, $1, 'Submitted' FROM (SELECT gen_random_uuid() AS id) AS new
       ON CONFLICT (job_id) DO UPDATE SET job_id = excluded.job_id RETURNING ${JOB_TABLE.columns}`,
      [jobId],
    );
    const [row] = rows as [JobRow];
    const news = afterEvent(factsOf(row), end, canReadEnds);
    if (!news) return;
    // Without a lease, the answer of a lookup in flight is not stored: it may be older than the event.
    const set = `state = $2, announced_at = CASE WHEN $3 THEN clock_timestamp() END, due_at = clock_timestamp(),
      ended_at = coalesce(ended_at, clock_timestamp()), ${RELEASE}`;
    await change(tx, row.id, set, news.job.state, news.job.isAnnounced);
    await this.publish(tx, row, news.publish);
  }

  /** For the poller: when the next job needs a review because its result cannot be read. */
  readonly nextReview = (): string => `(SELECT min(ended_at) + ${REVIEW_AFTER} FROM (${this.unreviewed(1)}) AS next)`;

  /** Asks for a review of each job whose result could not be read within an hour of its event. */
  async reviewUnreadable(): Promise<void> {
    await this.database.transaction(async (tx) => {
      const { rows } = await tx.query<JobRow>(
        `SELECT ${JOB_TABLE.columns} FROM compliance_jobs t
         WHERE id = ANY (ARRAY(SELECT id FROM (${this.unreviewed(100)}) AS next WHERE ended_at <= now() - ${REVIEW_AFTER}))
           AND review IS NULL FOR UPDATE SKIP LOCKED`,
      );
      for (const row of rows) {
        const news = afterLongWait(factsOf(row));
        if (!news) continue;
        await change(tx, row.id, 'review = $2', news.job.review);
        await this.publish(tx, row, news.publish);
      }
    });
  }

  /**
   * SQL of the oldest jobs whose results were not read, by either condition; each has an index. Without a lookup no result is
   * read, which needs no review of each job.
   */
  private unreviewed(limit: number): string {
    const conditions = [UNANNOUNCED, ...(this.contract.canCall('getComplianceJob') ? [UNREAD] : [])];
    const oldest = (condition: string) =>
      `(SELECT id, ended_at FROM compliance_jobs WHERE ${condition} ORDER BY ended_at LIMIT ${limit})`;
    return conditions.map(oldest).join(' UNION ALL ');
  }

  async publish(tx: PoolClient, { shownId, jobId }: JobRow, event: JobFeedEvent | null): Promise<void> {
    if (event === null) return;
    const subject = `compliance/jobs/${shownId}`;
    const { type, hasResult, ...more } = event;
    await this.feed.append(await this.prisma.in(tx), {
      type,
      subject,
      data: { jobId, ...more, result: hasResult ? subject : null },
    });
  }
}

/** Changes one row. @param set SQL assignments, whose parameters start at $2 */
async function change(tx: PoolClient, id: string, set: string, ...values: unknown[]): Promise<void> {
  await tx.query(`UPDATE compliance_jobs SET ${set}, updated_at = clock_timestamp() WHERE id = $1`, [id, ...values]);
}
