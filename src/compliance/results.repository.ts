import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../config/env.js';
import { Database } from '../database/database.js';
import type { ComplianceJob } from '../platform/compliance-client.js';
import type { FetchFault, FetchTurn } from '../sessions/fetch-loop.js';
import { LEASE_MS } from '../sessions/refresh-timing.js';
import { ComplianceSeal } from './compliance-seal.js';
import { hasEnded, type JobState } from './job-row.js';
import type { JobEnd } from './job-state.js';
import { nextPoll } from './poll-timing.js';

/** A job whose turn it is to be looked up. */
export interface ResultTurn extends FetchTurn {
  id: string;
  jobId: string;
  leaseToken: string;
  /** Before the look-up left. */
  state: JobState;
}

const ENDS = { completed: 'Completed', failed: 'Failed' } as const satisfies Record<string, JobEnd>;

/** Jobs of the platform as work: whose turn it is to be looked up, and what was found. */
@Injectable()
export class ResultsRepository {
  private readonly shortestMs: number;

  constructor(
    private readonly database: Database,
    private readonly seal: ComplianceSeal,
    env: Env,
  ) {
    this.shortestMs = env.COMPLIANCE_REFRESH_EVERY_SECONDS * 1_000;
  }

  /** Leases the job that is due for longest, or answers undefined. */
  async takeTurn(): Promise<ResultTurn | undefined> {
    const { rows } = await this.database.pool.query<ResultTurn>(
      `UPDATE compliance_jobs SET lease_token = gen_random_uuid(),
         lease_until = clock_timestamp() + $1 * interval '1 millisecond'
       WHERE id = (
         SELECT id FROM compliance_jobs
         WHERE due_at <= clock_timestamp() AND job_id IS NOT NULL
           AND (lease_until IS NULL OR lease_until < clock_timestamp())
         ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
       RETURNING id, job_id AS "jobId", lease_token AS "leaseToken", state, strikes, refused_at AS "refusedAt"`,
      [LEASE_MS],
    );
    return rows[0];
  }

  /** When the next job is due that nobody works on; undefined when none is. */
  async nextDueAt(): Promise<Date | undefined> {
    const { rows } = await this.database.pool.query<{ due_at: Date | null }>(
      `SELECT min(due_at) AS due_at FROM compliance_jobs
       WHERE job_id IS NOT NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())`,
    );
    return rows[0]?.due_at ?? undefined;
  }

  /**
   * Stores what the platform says of a job. An end is stored with the whole answer and told to the EHR unless its event
   * was; one that is still running is looked up again. Where the contract does not say what an answer means, the answer
   * that follows the end's event is the result.
   */
  async storeAnswer(tx: PoolClient, turn: ResultTurn, { state: found, raw }: ComplianceJob): Promise<void> {
    const { rows } = await tx.query<{ state: JobState; since: Date; now: Date }>(
      `SELECT state, coalesce(ended_at, submitted_at, created_at) AS since, clock_timestamp() AS now
       FROM compliance_jobs WHERE id = $1 FOR UPDATE`,
      [turn.id],
    );
    const [row] = rows;
    if (!row) return;
    const heardMeanwhile = hasEnded(row.state) && !hasEnded(turn.state);
    if (found === 'completed' || found === 'failed') {
      return this.storeResult(tx, turn.id, ENDS[found], raw);
    }
    if (found === 'unknown' && hasEnded(row.state) && !heardMeanwhile) {
      return this.storeResult(tx, turn.id, row.state, raw);
    }
    const canWait = found === 'running' || heardMeanwhile;
    await tx.query(
      `UPDATE compliance_jobs SET fetched_at = $2, fault = NULL, strikes = 0, refused_at = NULL, lease_token = NULL,
         lease_until = NULL, due_at = $3 WHERE id = $1`,
      [turn.id, row.now, heardMeanwhile ? row.now : canWait ? nextPoll(row.since, row.now, this.shortestMs) : null],
    );
  }

  private async storeResult(tx: PoolClient, id: string, end: JobEnd, raw: unknown): Promise<void> {
    await tx.query(
      `UPDATE compliance_jobs SET state = $2, result = $3, fetched_at = clock_timestamp(),
         ended_at = coalesce(ended_at, clock_timestamp()),
         news_at = CASE WHEN state IN ('Completed', 'Failed') THEN news_at ELSE clock_timestamp() END,
         fault = NULL, strikes = 0, refused_at = NULL, lease_token = NULL, lease_until = NULL, due_at = NULL,
         updated_at = clock_timestamp()
       WHERE id = $1`,
      [id, end, this.seal.sealResult(id, raw)],
    );
  }

  /** Stores that the platform does not know a job (any more). */
  async storeGone({ id, leaseToken }: ResultTurn): Promise<void> {
    await this.database.pool.query(
      `UPDATE compliance_jobs SET fault = 'gone', due_at = NULL, lease_token = NULL, lease_until = NULL,
         updated_at = clock_timestamp() WHERE id = $1 AND lease_token = $2`,
      [id, leaseToken],
    );
  }

  async storeFault({ id, leaseToken }: ResultTurn, { code, waitMs, strike }: FetchFault): Promise<void> {
    await this.database.pool.query(
      `UPDATE compliance_jobs SET fault = $3, strikes = strikes + $4, lease_token = NULL, lease_until = NULL,
         refused_at = CASE WHEN $3 = 'platform-unauthorized' THEN clock_timestamp() ELSE refused_at END,
         due_at = clock_timestamp() + $5 * interval '1 millisecond'
       WHERE id = $1 AND lease_token = $2`,
      [id, leaseToken, code, strike ? 1 : 0, waitMs],
    );
  }
}
