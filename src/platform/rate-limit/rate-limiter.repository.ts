import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { bulkPermits, type CallLimit, type CallWindow, type Lane, nextBulkAt, sharedPauseMs } from './pacing.js';

/** A granted permit for one immediate HTTP attempt. */
export interface CallGrant {
  id: string;
  grantedAt: Date;
}

/** The outcome of a call, for the history and the window. */
export interface CallOutcome {
  outcome: string;
  status: number | null;
  durationMs: number;
  /** A short cause of a failure, never a value that was sent or received. */
  reason?: string | undefined;
  /** False if certainly nothing reached the platform, which frees the permit immediately. */
  reached: boolean;
}

/** A call that has ended. */
export type EndedCall = { operation: string; outcome: string; status: number | null; reason: string | null };

/** Maximum time between the commit of a grant and the sending of its call. */
export const SEND_WITHIN_MS = 1_000;

/** SQL condition for calls of any account, so that the index on account and time is used. */
export const OF_ANY_ACCOUNT = 'account = ANY (ARRAY(SELECT account FROM call_budgets))';

/**
 * The occupied permits of account $1 that become free first, at most $2. The order and the limit make the planner use
 * their index, regardless of its statistics.
 */
const OCCUPIED = `SELECT expires_at FROM platform_calls WHERE account = $1 AND expires_at > (SELECT now FROM clock)
  ORDER BY expires_at LIMIT $2`;

/**
 * The log of user-management calls, which enforces the limit. A call's row occupies a permit from its commit until one
 * window after its answer, or after its timeout. The platform counts the call in between, so no sliding window of the
 * platform contains more calls than the limit (README.md).
 */
@Injectable()
export class RateLimiterRepository {
  readonly limit: CallLimit;
  private readonly account: string;
  private readonly worker = `${hostname()}:${process.pid}`;
  /** How long a call without an answer occupies its permit. */
  private readonly holdMs: number;

  constructor(env: Env) {
    this.account = createHash('sha256').update(env.PLATFORM_API_KEY).digest('hex').slice(0, 16);
    this.limit = { calls: env.USER_MANAGEMENT_CALLS_PER_MINUTE, windowMs: 60_000 };
    this.holdMs = SEND_WITHIN_MS + env.PLATFORM_TIMEOUT_SECONDS * 1_000 + this.limit.windowMs;
  }

  /** Locks the budget. Waits for a grant in progress, so that every later one sees the changes of this transaction. */
  async awaitGrants(tx: PoolClient): Promise<void> {
    const text = 'SELECT 1 FROM call_budgets WHERE account = $1 FOR UPDATE';
    const { rowCount } = await tx.query({ name: 'lock-budget', text, values: [this.account] });
    if (rowCount !== 0) return;
    await tx.query('INSERT INTO call_budgets (account) VALUES ($1) ON CONFLICT DO NOTHING', [this.account]);
    await this.awaitGrants(tx);
  }

  /**
   * Reads the window. A grant may rely on it only under the budget's lock.
   *
   * @param more further columns of the same statement, whose parameters count from $3
   */
  async readWindow<More extends object = object>(
    sql: Pick<Pool, 'query'>,
    more: { name: string; columns: string; values: unknown[] } = { name: 'window', columns: '', values: [] },
  ): Promise<CallWindow & More> {
    const { rows } = await sql.query({
      name: more.name,
      text: `WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
         occupied AS (${OCCUPIED}),
         budget AS (SELECT blocked_until, bulk_next_at FROM call_budgets WHERE account = $1)
       SELECT (SELECT now FROM clock) AS now, (SELECT count(*)::int FROM occupied) AS occupied,
         (SELECT min(expires_at) FROM occupied) AS "firstFreeAt",
         (SELECT blocked_until FROM budget) AS "blockedUntil", (SELECT bulk_next_at FROM budget) AS "bulkNextAt"
         ${more.columns}`,
      values: [this.account, this.limit.calls, ...more.values],
    });
    return rows[0];
  }

  /** The outcomes of the latest calls of the last hour, newest first. */
  async newest(sql: Pick<Pool, 'query'>, count: number): Promise<EndedCall[]> {
    const { rows } = await sql.query<EndedCall>(
      `SELECT operation, outcome, status, reason FROM platform_calls
       WHERE account = $1 AND outcome IS NOT NULL AND granted_at > now() - interval '1 hour'
       ORDER BY granted_at DESC LIMIT $2`,
      [this.account, count],
    );
    return rows;
  }

  /** The rest of the pause after a 429, in milliseconds. */
  async pauseMs(sql: Pick<Pool, 'query'>): Promise<number> {
    const { blockedUntil, now } = await this.readWindow(sql);
    return Math.max(0, (blockedUntil ?? now).getTime() - now.getTime());
  }

  /** Bulk calls per second that the limit allows. */
  fullPace(): number {
    return (bulkPermits(this.limit) / this.limit.windowMs) * 1_000;
  }

  /**
   * Bulk calls per second in the last minutes; 0 if there were none.
   *
   * @param since calls before it do not count: until then there was perhaps nothing to send
   */
  async recentPace(sql: Pick<Pool, 'query'>, since: Date): Promise<number> {
    const { rows } = await sql.query<{ pace: number }>(
      `SELECT count(*) / greatest(10, extract(epoch FROM clock_timestamp() - min(granted_at)))::float8 AS pace
       FROM platform_calls
       WHERE ${OF_ANY_ACCOUNT} AND granted_at > greatest($1, clock_timestamp() - interval '3 minutes')
         AND lane = 'bulk' AND outcome IS DISTINCT FROM 'not-sent'`,
      [since],
    );
    return rows[0]?.pace ?? 0;
  }

  /** Writes the call's row: permit, intent and history. The call may be sent once the transaction commits. */
  async grant(
    tx: PoolClient,
    window: CallWindow,
    call: { personId: string; operation: string; lane: Lane },
  ): Promise<CallGrant> {
    const bulkNextAt = call.lane === 'bulk' ? nextBulkAt(window, this.limit) : null;
    const { rows } = await tx.query<CallGrant>({
      name: 'grant',
      text: `WITH paced AS (UPDATE call_budgets SET bulk_next_at = $7 WHERE account = $1 AND $7::timestamptz IS NOT NULL)
        INSERT INTO platform_calls (account, person_id, operation, lane, granted_at, expires_at, worker)
        SELECT $1, $2, $3, $4::lane, now, now + $5 * interval '1 millisecond', $6 FROM clock_timestamp() AS now
        RETURNING id, granted_at AS "grantedAt"`,
      values: [this.account, call.personId, call.operation, call.lane, this.holdMs, this.worker, bulkNextAt],
    });
    return rows[0] as CallGrant;
  }

  /** Records the answer. The permit stays occupied for one more window, or is freed if nothing was sent. */
  async settle(tx: PoolClient, grant: CallGrant, result: CallOutcome): Promise<void> {
    const { outcome, status, durationMs, reached, reason = null } = result;
    await tx.query({
      name: 'settle',
      text: `UPDATE platform_calls SET outcome = $2, status = $3::int, duration_ms = $4, reason = $7, answered_at = clock_timestamp(),
         expires_at = CASE
           WHEN NOT $5::boolean THEN clock_timestamp()
           WHEN $3::int IS NOT NULL THEN clock_timestamp() + $6 * interval '1 millisecond'
           ELSE expires_at END
       WHERE id = $1`,
      values: [grant.id, outcome, status, Math.round(durationMs), reached, this.limit.windowMs, reason],
    });
  }

  /**
   * Delays all calls after a 429, because all operations share the limit. A shorter delay never replaces a longer one.
   * Needs the budget's lock.
   *
   * @param retryAfterMs null if the 429 named no wait: then until the first permit of the window is free
   * @returns the delay in milliseconds, at most a minute
   */
  async pause(tx: PoolClient, retryAfterMs: number | null): Promise<number> {
    const pauseMs = sharedPauseMs(retryAfterMs, await this.readWindow(tx));
    await tx.query(
      `UPDATE call_budgets SET blocked_until = greatest(blocked_until, clock_timestamp() + $2 * interval '1 millisecond')
       WHERE account = $1`,
      [this.account, pauseMs],
    );
    return pauseMs;
  }
}
