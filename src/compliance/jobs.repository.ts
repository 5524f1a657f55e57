import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit, BEGUN } from '../access/audit/audit.js';
import { Database } from '../database/database.js';
import { decodeCursor, type Page, pageOf } from '../http/request/page.js';
import { UUID } from '../http/request/uuid-param.js';
import { platformKey } from '../platform/contract/wire-types.js';
import { SpellingsRepository } from '../platform/http/spellings.repository.js';
import { retryWhenTaken } from '../platform/send/send-once.js';
import { RELEASE } from '../queue/due-rows/lease.js';
import { joinTraces, tracesNow } from '../queue/due-rows/traces.js';
import type { ComplianceJobsQuery } from './compliance.dto.js';
import { type ComplianceRequest, ComplianceSeal, type JobRow, LANES } from './job.js';
import { JobOutcomes, SHOWN_ID } from './job-outcomes.repository.js';
import { UNSETTLED } from './job-rules.js';

/** A job, with the id that is shown. */
export type ShownJob = JobRow & { shown_id: string };

/** The jobs that were submitted here or known from events, and the ways to resolve them. */
@Injectable()
export class JobsRepository {
  constructor(
    private readonly database: Database,
    private readonly outcomes: JobOutcomes,
    private readonly seal: ComplianceSeal,
    private readonly audit: Audit,
    private readonly spellings: SpellingsRepository,
  ) {}

  /** Finds a job by its id here, by the id of its submission or by the platform's. */
  async find(id: string, tx: Pick<PoolClient, 'query'> = this.database.pool): Promise<ShownJob | undefined> {
    const { rows } = await tx.query<ShownJob>(
      `SELECT j.*, ${SHOWN_ID} AS shown_id
       FROM (SELECT coalesce((SELECT same_as FROM compliance_jobs WHERE id = $1), $1) AS id) AS named,
         compliance_jobs j WHERE j.id = named.id OR j.job_id = $2
       ORDER BY j.id = named.id DESC NULLS LAST LIMIT 1`,
      [UUID.test(id) ? id : null, platformKey(id)],
    );
    return rows[0];
  }

  /** One page, newest first. */
  async list({ state, review, limit, cursor }: ComplianceJobsQuery): Promise<Page<ShownJob>> {
    const before = decodeCursor<[createdAt: string, id: string]>(cursor, 'time', 'uuid');
    const { rows } = await this.database.pool.query<ShownJob>(
      `SELECT j.*, ${SHOWN_ID} AS shown_id FROM compliance_jobs j
       WHERE same_as IS NULL AND ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR review = $2)
         AND ($3::timestamptz IS NULL OR (created_at, id) < ($3, $4::uuid))
       ORDER BY created_at DESC, id DESC LIMIT $5`,
      [state ?? null, review ?? null, before?.[0] ?? null, before?.[1] ?? null, limit + 1],
    );
    return pageOf(rows, limit, (row) => [row.created_at.toISOString(), row.id]);
  }

  /** Stores a job that is due to be submitted, unless an earlier run of the same request stored it. */
  keep(id: string, request: ComplianceRequest): Promise<ShownJob> {
    return this.database.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO compliance_jobs (id, state, request, lane, due_at, traceparents)
         VALUES ($1, 'Requested', $2, ${LANES.submissions}, clock_timestamp(), $3) ON CONFLICT (id) DO NOTHING`,
        [id, this.seal.request.seal(id, request), tracesNow()],
      );
      this.audit.about('compliance-job', id);
      await this.audit.store(tx, BEGUN);
      return (await this.find(id, tx)) as ShownJob;
    });
  }

  /**
   * Makes an unsettled job due to be submitted again. Not if only the URL of the lookup may be wrong, because the platform
   * may have the job.
   *
   * @returns false if it is settled
   */
  sendAgain(id: string): Promise<boolean> {
    return this.changed(id, BEGUN, async (tx) => {
      const { rowCount } = await tx.query(
        `UPDATE compliance_jobs j SET state = 'Requested', lane = ${LANES.submissions}, due_at = clock_timestamp(),
           attempted_at = NULL, job_id = NULL, ended_at = NULL, announced_at = NULL, review = NULL, fault = NULL,
           failures = 0, refused_at = NULL, lease_no = lease_no + 1, ${RELEASE}, ${joinTraces('j', '$2')},
           updated_at = clock_timestamp()
         WHERE id = $1 AND request IS NOT NULL AND ${UNSETTLED} AND fault IS DISTINCT FROM 'maybe-gone'`,
        [id, tracesNow()],
      );
      return rowCount === 1;
    });
  }

  /** Resolves an unsettled job with the platform's. @param spelling of the platform's id, as the operator wrote it */
  async link(id: string, spelling: string): Promise<'linked' | 'taken' | 'wrong-state'> {
    return retryWhenTaken(async () => {
      let outcome: 'linked' | 'taken' | 'wrong-state' = 'wrong-state';
      await this.changed(id, 'ok', async (tx) => {
        await this.spellings.learnIfNew(tx, spelling);
        const { rows } = await tx.query<JobRow>(
          `SELECT * FROM compliance_jobs WHERE id = $1 AND ${UNSETTLED} FOR UPDATE`,
          [id],
        );
        if (rows[0]) outcome = (await this.outcomes.settle(tx, rows[0], platformKey(spelling))) ? 'linked' : 'taken';
        return outcome === 'linked';
      });
      return outcome;
    });
  }

  /** Ends a job. @returns false if it is in flight or settled */
  abandon(id: string): Promise<boolean> {
    return this.changed(id, 'ok', async (tx) => {
      const { rowCount } = await tx.query(
        `UPDATE compliance_jobs SET state = 'Abandoned', ended_at = NULL, review = NULL, fault = NULL, due_at = NULL,
           ${RELEASE},
           updated_at = clock_timestamp()
         WHERE id = $1 AND (${UNSETTLED} OR state = 'Requested' AND lease_owner IS NULL)`,
        [id],
      );
      return rowCount === 1;
    });
  }

  /** Makes a change that a caller requested, and stores its audit entry unless it is false. */
  private changed(id: string, outcome: string, change: (tx: PoolClient) => Promise<boolean>): Promise<boolean> {
    return this.database.transaction(async (tx) => {
      const isChanged = await change(tx);
      this.audit.about('compliance-job', id);
      if (isChanged) await this.audit.store(tx, outcome);
      return isChanged;
    });
  }
}
