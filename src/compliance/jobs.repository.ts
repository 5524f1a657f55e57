import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit, BEGUN } from '../access/audit/audit.js';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import { decodeCursor, type Page, pageOf } from '../http/request/page.js';
import { UUID } from '../http/request/uuid-param.js';
import { platformKey } from '../platform/contract/wire-types.js';
import { type Lease, RELEASE, take } from '../queue/due-rows/lease.js';
import { WorkerProcess } from '../queue/due-rows/worker-process.js';
import type { Bind } from '../queue/notifier/poller.js';
import { Outbox, wasTaken } from '../queue/outbox/outbox.js';
import { type JobRow, type JobState, UNSETTLED } from './job.js';

/** How long after the platform's timeout an attempt may take to be sent and to store its outcome. */
const ATTEMPT_MARGIN_MS = 15_000;

/** `taken`: another submission has the platform's id. `settled`: this one is no longer unknown. */
type LinkOutcome = 'linked' | 'taken' | 'settled';

/** Compliance jobs and the outcomes of their submissions. */
@Injectable()
export class JobsRepository {
  readonly outbox: Outbox<object>;

  constructor(
    private readonly database: Database,
    private readonly env: Env,
    private readonly audit: Audit,
    worker: WorkerProcess,
  ) {
    const effectMs = env.PLATFORM_TIMEOUT_SECONDS * 1_000 + ATTEMPT_MARGIN_MS;
    this.outbox = new Outbox({ name: 'compliance_jobs', key: 'id', mark: 'submitted_at', effectMs }, database, worker);
  }

  /** Finds a job by its id here or on the platform, or by the former id under which its end was published. */
  async find(id: string): Promise<JobRow | undefined> {
    const { rows } = await this.database.pool.query<JobRow>(
      `SELECT * FROM compliance_jobs
       WHERE id = $1::uuid OR job_id = $2 OR id = (SELECT job FROM compliance_aliases WHERE id = $1::uuid)
       ORDER BY id = $1::uuid DESC NULLS LAST LIMIT 1`,
      [UUID.test(id) ? id : null, platformKey(id)],
    );
    return rows[0];
  }

  /** One page, newest first. */
  async list(state: JobState | undefined, limit: number, cursor: string | undefined): Promise<Page<JobRow>> {
    const before = decodeCursor<[createdAt: string, id: string]>(cursor, 'time', 'uuid');
    const { rows } = await this.database.pool.query<JobRow>(
      `SELECT * FROM compliance_jobs WHERE ($1::text IS NULL OR state = $1)
         AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3::uuid))
       ORDER BY created_at DESC, id DESC LIMIT $4`,
      [state ?? null, before?.[0] ?? null, before?.[1] ?? null, limit + 1],
    );
    return pageOf(rows, limit, (row) => [row.created_at.toISOString(), row.id]);
  }

  /**
   * Commits a job about to be submitted, leased to this process.
   *
   * @param request encrypted; the same bytes when this runs again because its commit was not confirmed
   * @returns undefined if an earlier job with this id may have been accepted, so that nothing may be sent
   */
  async begin(id: string, request: Buffer): Promise<Lease | undefined> {
    const { table, owner } = this.outbox;
    return this.changeAudited(id, BEGUN, async (tx) => {
      const { rows } = await tx.query<{ no: number }>(
        `INSERT INTO compliance_jobs AS known (id, state, request, submitted_at, lease_owner, lease_no, lease_safe_at)
       VALUES ($1, 'Requested', $2, clock_timestamp(), $3, 1, clock_timestamp() + $4 * interval '1 millisecond')
       ON CONFLICT (id) DO UPDATE SET state = 'Requested', request = excluded.request, fault = NULL, removed_at = NULL,
         submitted_at = excluded.submitted_at, lease_owner = excluded.lease_owner, lease_no = known.lease_no + 1,
         lease_safe_at = excluded.lease_safe_at, updated_at = clock_timestamp()
       WHERE known.state = 'Rejected' OR known.state = 'Requested' AND known.request = excluded.request
       RETURNING lease_no AS no`,
        [id, request, owner, table.effectMs],
      );
      return rows[0] && this.outbox.begun(id, rows[0].no);
    });
  }

  /** Commits that an unknown job is submitted again. @returns undefined if it is not unknown */
  async beginAgain(id: string): Promise<Lease | undefined> {
    const { table, owner } = this.outbox;
    return this.changeAudited(id, BEGUN, async (tx) => {
      const { rows } = await tx.query<{ no: number }>(
        `UPDATE compliance_jobs SET state = 'Requested', submitted_at = clock_timestamp(), ${take('$2', '$3')}, due_at = NULL,
         job_id = NULL, ended_at = NULL, pending_events_at = NULL, fault = NULL, failures = 0, updated_at = clock_timestamp()
       WHERE id = $1 AND request IS NOT NULL AND ${UNSETTLED} RETURNING lease_no AS no`,
        [id, owner, table.effectMs],
      );
      return rows[0] && this.outbox.begun(id, rows[0].no);
    });
  }

  /**
   * Stores the platform's id of a submission that has not been settled in the meantime. If another submission has the
   * same id, the outcome of this one is unknown.
   */
  async accepted(attempt: Lease, jobId: string): Promise<void> {
    if ((await this.adopt(attempt.key, jobId, attempt.no)) === 'taken') await this.notAccepted(attempt, 'Unknown');
  }

  /**
   * Stores that a submission was rejected, or that its outcome is unknown, unless it was settled in the meantime.
   *
   * @param fault why it was rejected
   */
  async notAccepted({ key, no }: Lease, state: 'Rejected' | 'Unknown', fault: string | null = null): Promise<void> {
    await this.database.pool.query(
      `UPDATE compliance_jobs SET state = $3, fault = $4, due_at = NULL, ${RELEASE}, updated_at = clock_timestamp()
       WHERE id = $1 AND lease_no = $2 AND state IN ('Requested', 'Unknown')`,
      [key, no, state, state === 'Rejected' ? fault : null],
    );
  }

  /** For the poller: due while `settleLost` has work. */
  readonly lostSince = (bind: Bind): string => this.outbox.lostSince(bind);

  /** Marks submissions `Unknown` whose process died before it stored an outcome. */
  async settleLost(): Promise<void> {
    for (const attempt of await this.outbox.lost()) await this.notAccepted(attempt, 'Unknown');
  }

  /** Resolves an unknown submission with the platform's job. */
  async link(id: string, jobId: string): Promise<LinkOutcome> {
    return this.adopt(id, jobId, null);
  }

  /** @returns false if the job's outcome is not unknown */
  async abandon(id: string): Promise<boolean> {
    return this.changeAudited(id, 'ok', async (tx) => {
      const { rowCount } = await tx.query(
        `UPDATE compliance_jobs SET state = 'Abandoned', fault = NULL, due_at = NULL, lease_owner = NULL,
         job_id = CASE WHEN state IN ('Completed', 'Failed') THEN job_id END,
         updated_at = clock_timestamp()
       WHERE id = $1 AND ${UNSETTLED}`,
        [id],
      );
      return rowCount !== 0;
    });
  }

  /**
   * Gives a job the platform's id. A row that an event created for that id is merged into the job and deleted.
   *
   * @param attempt the number of the lease; null for a manual resolve
   */
  private adopt(id: string, jobId: string, attempt: number | null): Promise<LinkOutcome> {
    const work = (tx: PoolClient) => this.adoptIn(tx, id, jobId, attempt);
    return this.outbox.settling(work).catch((error: unknown) => {
      if (wasTaken(error)) return 'taken';
      throw error;
    });
  }

  private async adoptIn(tx: PoolClient, id: string, jobId: string, attempt: number | null): Promise<LinkOutcome> {
    const { rowCount } = await tx.query(
      `SELECT FROM compliance_jobs
       WHERE id = $1 AND CASE WHEN $2::int IS NULL THEN ${UNSETTLED}
                              ELSE lease_no = $2 AND state IN ('Requested', 'Unknown') END
       FOR UPDATE`,
      [id, attempt],
    );
    if (rowCount === 0) return 'settled';
    const { rows } = await tx.query<{ id: string; state: string; ended_at: Date; pending_events_at: Date | null }>(
      `DELETE FROM compliance_jobs WHERE job_id = $1 AND id <> $2 AND submitted_at IS NULL
       RETURNING id, state, ended_at, pending_events_at`,
      [jobId, id],
    );
    const [ended] = rows;
    // Its id may have been published.
    if (ended) await tx.query('INSERT INTO compliance_aliases (id, job) VALUES ($1, $2)', [ended.id, id]);
    await tx.query(
      `UPDATE compliance_jobs SET job_id = $2, state = $3, ended_at = $4, pending_events_at = $5, fault = NULL, failures = 0,
         ${RELEASE}, result = NULL, updated_at = clock_timestamp(),
         due_at = clock_timestamp() + CASE WHEN $4::timestamptz IS NULL THEN $6 ELSE 0 END * interval '1 millisecond'
       WHERE id = $1`,
      [
        id,
        jobId,
        ended?.state ?? 'Submitted',
        ended?.ended_at ?? null,
        ended?.pending_events_at ?? null,
        this.env.COMPLIANCE_REFRESH_AFTER_SECONDS * 1_000,
      ],
    );
    this.audit.about('compliance-job', id);
    if (attempt === null) await this.audit.store(tx);
    return 'linked';
  }

  /** Makes a change that a caller requested, and writes its audit entry if anything changed. */
  private changeAudited<T>(id: string, outcome: string, change: (tx: PoolClient) => Promise<T>): Promise<T> {
    return this.database.transaction(async (tx) => {
      const changed = await change(tx);
      this.audit.about('compliance-job', id);
      if (changed) await this.audit.store(tx, outcome);
      return changed;
    });
  }
}
