import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { JobEnd } from '../model/job-row.js';

/**
 * Jobs of the platform as its events report of them; unknown ones are made. Completed stands above Failed, so that the
 * order of events does not matter; an end that was not on record before is published.
 */
@Injectable()
export class JobEventsRepository {
  constructor(private readonly database: Database) {}

  /** Records the end of a compliance job, and makes its result due: a look-up that left before has lost its lease. */
  async recordComplianceEnd(tx: PoolClient, jobId: string, end: JobEnd): Promise<void> {
    await tx.query(
      `INSERT INTO compliance_jobs AS known (id, job_id, state, ended_at, due_at, pending_events_at)
       VALUES (gen_random_uuid(), $1, $2, clock_timestamp(), clock_timestamp(), clock_timestamp())
       ON CONFLICT (job_id) DO UPDATE SET
         state = CASE WHEN known.state = 'Completed' THEN 'Completed' ELSE excluded.state END,
         pending_events_at = CASE WHEN known.state IN ('Completed', excluded.state) THEN known.pending_events_at ELSE excluded.pending_events_at END,
         ended_at = coalesce(known.ended_at, excluded.ended_at), due_at = excluded.due_at,
         result = CASE WHEN known.state IN ('Completed', excluded.state) THEN known.result END,
         lease_owner = NULL, lease_safe_at = NULL, updated_at = clock_timestamp()`,
      [jobId, end],
    );
  }

  /** Records the end of a smart edit job. @returns whether it was not on record before */
  async recordSmartEditEnd(tx: PoolClient, jobId: string, end: JobEnd): Promise<boolean> {
    const { rowCount } = await tx.query(
      `INSERT INTO smart_edit_jobs AS known (job_id, state) VALUES ($1, $2)
       ON CONFLICT (job_id) DO UPDATE SET state = excluded.state, updated_at = clock_timestamp()
       WHERE known.state NOT IN ('Completed', excluded.state)`,
      [jobId, end],
    );
    return rowCount === 1;
  }

  /** The end of a smart edit job; undefined when no event came. */
  async findSmartEdit(jobId: string): Promise<{ state: JobEnd; updatedAt: Date } | undefined> {
    const { rows } = await this.database.pool.query<{ state: JobEnd; updatedAt: Date }>(
      'SELECT state, updated_at AS "updatedAt" FROM smart_edit_jobs WHERE job_id = $1',
      [jobId],
    );
    return rows[0];
  }
}
