import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Database } from '../../database/database.js';
import type { ComplianceJob } from '../../platform/clients/compliance-client.js';
import { DueRows } from '../../queue/due-rows/due-rows.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import type { FetchClaim, FetchFault } from '../../sessions/refresh/fetch-loop.js';
import { storeFault } from '../../sessions/refresh/store-fault.js';
import { ComplianceSeal } from '../model/compliance-seal.js';
import { hasEnded, type JobState } from '../model/job-row.js';
import type { JobEnd } from '../model/job-state.js';
import { nextPoll } from './poll-timing.js';

/** A job whose turn it is to be looked up. */
export interface ResultClaim extends FetchClaim {
  id: string;
  jobId: string;
  lease: Lease;
}

/** The columns of a job that decide on its look-ups. */
interface ResultColumns {
  id: string;
  job_id: string;
  state: JobState;
  result: Buffer | null;
  submitted_at: Date | null;
  ended_at: Date | null;
  created_at: Date;
  failures: number;
  refused_at: Date | null;
}

const ENDS = { completed: 'Completed', failed: 'Failed' } as const satisfies Record<string, JobEnd>;

/** Jobs of the platform as work: whose turn it is to be looked up, and what was found. Only these have a due date. */
@Injectable()
export class ResultsRepository {
  private readonly shortestMs: number;
  private readonly due: DueRows<ResultColumns>;

  constructor(
    private readonly database: Database,
    private readonly seal: ComplianceSeal,
    env: Env,
    worker: WorkerProcess,
  ) {
    this.shortestMs = env.COMPLIANCE_REFRESH_EVERY_SECONDS * 1_000;
    const table = { name: 'compliance_jobs', key: 'id', lanes: [{ lane: 0 }], effectMs: 0 };
    this.due = new DueRows(table, database, worker);
  }

  /** Leases the job that is due for longest, or answers undefined. */
  async claimNext(): Promise<ResultClaim | undefined> {
    const leased = await this.due.claim();
    if (!leased) return undefined;
    const { lease, row } = leased;
    return { id: row.id, jobId: row.job_id, lease, failures: row.failures, refusedAt: row.refused_at };
  }

  /** The turn has ended, however it did. */
  endClaim({ lease }: ResultClaim): void {
    this.due.done(lease);
  }

  /** When the next job is due that nobody works on; undefined when none is. */
  nextDueAt(): Promise<Date | undefined> {
    return this.due.nextDueAt();
  }

  /**
   * Stores what the platform says of a job, unless its end was heard of since the look-up left. An end is stored with
   * the whole answer and told to the EHR unless an event told the same; one that is still running is looked up again.
   * Where the contract does not say what an answer means, the answer after the end's event is the result; until then
   * each other answer is shown and told, for the event may have been lost.
   */
  async storeAnswer(tx: PoolClient, turn: ResultClaim, { state: found, raw }: ComplianceJob): Promise<void> {
    const row = await this.due.lock(tx, turn.lease);
    if (!row) return;
    if (found === 'completed' || found === 'failed') return this.storeResult(tx, turn, ENDS[found], raw);
    if (found === 'unknown' && hasEnded(row.state)) return this.storeResult(tx, turn, row.state, raw);
    const isNew =
      found === 'unknown' && !isDeepStrictEqual(row.result && this.seal.openResult(row.id, row.result), raw);
    const since = row.ended_at ?? row.submitted_at ?? row.created_at;
    await this.due.settle(tx, turn.lease, {
      set: `fetched_at = $1, fault = NULL, failures = 0, refused_at = NULL, due_at = $2, result = coalesce($3, result),
        news_at = CASE WHEN $3::bytea IS NULL THEN news_at ELSE $1 END,
        updated_at = CASE WHEN $3::bytea IS NULL THEN updated_at ELSE $1 END`,
      values: [row.now, nextPoll(since, row.now, this.shortestMs), isNew ? this.seal.sealResult(row.id, raw) : null],
    });
  }

  private async storeResult(tx: PoolClient, { id, lease }: ResultClaim, end: JobEnd, raw: unknown): Promise<void> {
    await this.due.settle(tx, lease, {
      set: `state = $1, result = $2, fetched_at = clock_timestamp(), ended_at = coalesce(ended_at, clock_timestamp()),
        news_at = CASE WHEN state = $1 THEN news_at ELSE clock_timestamp() END,
        fault = NULL, failures = 0, refused_at = NULL, due_at = NULL, updated_at = clock_timestamp()`,
      values: [end, this.seal.sealResult(id, raw)],
    });
  }

  /** Stores that the platform does not know a job now; it is asked again. */
  async storeGone({ lease }: ResultClaim, waitMs: number): Promise<void> {
    await this.due.settle(this.database.pool, lease, {
      set: `fault = 'gone', failures = failures + 1, refused_at = NULL,
        updated_at = CASE WHEN fault = 'gone' THEN updated_at ELSE clock_timestamp() END,
        due_at = clock_timestamp() + $1 * interval '1 millisecond'`,
      values: [waitMs],
    });
  }

  async storeFault({ lease }: ResultClaim, fault: FetchFault): Promise<void> {
    await this.due.settle(this.database.pool, lease, storeFault(fault));
  }
}
