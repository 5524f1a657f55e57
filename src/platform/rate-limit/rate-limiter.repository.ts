import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { Random } from '../../config/random.js';
import { bulkPermits, type CallLimit, type CallWindow, type Lane, nextBulkAt, pauseMs } from './pacing.js';

/** A permit that was granted: the right to one HTTP attempt, now. */
export interface CallGrant {
  id: string;
  grantedAt: Date;
}

/** What became of a call, for the history and the window. */
export interface CallOutcome {
  outcome: string;
  status: number | null;
  durationMs: number;
  /** False when it is certain that nothing reached the platform: the permit is free at once. */
  reached: boolean;
  /** Set for a 429: what Retry-After said, in milliseconds, undefined when it did not say. */
  rateLimited?: { retryAfterMs: number | undefined };
}

/** Calls in a row without a readable answer after which what they asked for counts as not answered. */
export const UNANSWERED = 3;

/** Calls that are looked at to find those: more than are ever under way. */
const LATEST = 100;

/** The outcomes of the newest calls, as many as `UNANSWERED`, that have one and meet a condition. */
export const newestOutcomes = (condition: string): string => `(
  SELECT person_id, outcome FROM (SELECT * FROM platform_calls ORDER BY id DESC LIMIT ${LATEST}) AS latest
  WHERE ${condition} AND (status IS NOT NULL OR outcome = 'unknown-outcome')
  ORDER BY id DESC LIMIT ${UNANSWERED}) AS newest`;

/** Milliseconds that may pass between the commit of a grant and the sending of its call. */
export const SEND_WITHIN_MS = 1_000;

/** Calls of whichever account: by their moment they are found by their account's index alone. */
export const OF_ANY_ACCOUNT = 'account = ANY (ARRAY(SELECT account FROM call_budgets))';

/**
 * Permits of the account $1 that are occupied, as far as they count: of as many as there are, $2, those that become free
 * first. In their order and with an end they are read by their index, whatever the planner knows of the calls before.
 */
const OCCUPIED = `SELECT expires_at FROM platform_calls WHERE account = $1 AND expires_at > (SELECT now FROM clock)
  ORDER BY expires_at LIMIT $2`;

/**
 * The log of user-management calls, which is the limit: a call's row occupies the window from its commit until one
 * window after its answer, or after its timeout when no answer came. Whatever moment the platform counts lies in
 * between, so no sliding window of the platform's ever holds more calls than the limit.
 */
@Injectable()
export class RateLimiterRepository {
  readonly limit: CallLimit;
  private readonly account: string;
  private readonly worker = `${hostname()}:${process.pid}`;
  /** Milliseconds for which a call without an answer occupies its permit. */
  private readonly holdMs: number;

  constructor(
    env: Env,
    private readonly random: Random,
  ) {
    this.account = createHash('sha256').update(env.PLATFORM_API_KEY).digest('hex').slice(0, 16);
    this.limit = { calls: env.USER_MANAGEMENT_CALLS_PER_MINUTE, windowMs: env.USER_MANAGEMENT_WINDOW_SECONDS * 1_000 };
    this.holdMs = SEND_WITHIN_MS + env.PLATFORM_TIMEOUT_SECONDS * 1_000 + this.limit.windowMs;
  }

  /** Locks the budget, which serialises grants over all processes, and reads the window. */
  async lockWindow(tx: PoolClient): Promise<CallWindow> {
    await this.awaitGrants(tx);
    return this.readWindow(tx);
  }

  /** Waits for the grant that is being decided: whatever is granted after this transaction knows what it changed. */
  async awaitGrants(tx: PoolClient): Promise<void> {
    const { rowCount } = await tx.query('SELECT 1 FROM call_budgets WHERE account = $1 FOR UPDATE', [this.account]);
    if (rowCount !== 0) return;
    await tx.query('INSERT INTO call_budgets (account) VALUES ($1) ON CONFLICT DO NOTHING', [this.account]);
    await this.awaitGrants(tx);
  }

  /** Reads the window as it stands; only under the budget's lock may a grant follow from it. */
  async readWindow(sql: Pick<Pool, 'query'>): Promise<CallWindow> {
    const { rows } = await sql.query(
      `WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS now),
         occupied AS (${OCCUPIED}),
         budget AS (SELECT blocked_until, bulk_next_at FROM call_budgets WHERE account = $1)
       SELECT (SELECT now FROM clock) AS now, (SELECT count(*)::int FROM occupied) AS occupied,
         (SELECT min(expires_at) FROM occupied) AS "firstFreeAt",
         (SELECT blocked_until FROM budget) AS "blockedUntil", (SELECT bulk_next_at FROM budget) AS "bulkNextAt"`,
      [this.account, this.limit.calls],
    );
    return rows[0];
  }

  /** What became of the newest calls that ended in the last hour, the newest first. */
  async newest(sql: Pick<Pool, 'query'>, count: number): Promise<{ outcome: string; status: number | null }[]> {
    const { rows } = await sql.query(
      `SELECT outcome, status FROM platform_calls
       WHERE account = $1 AND outcome IS NOT NULL AND granted_at > now() - interval '1 hour'
       ORDER BY granted_at DESC LIMIT $2`,
      [this.account, count],
    );
    return rows;
  }

  /** How often bulk calls may go: milliseconds for each, and what is left of a 429's pause. */
  async bulkPace(sql: Pick<Pool, 'query'>): Promise<{ callMs: number; blockedMs: number }> {
    const { blockedUntil, now } = await this.readWindow(sql);
    const blockedMs = Math.max(0, (blockedUntil ?? now).getTime() - now.getTime());
    return { callMs: this.limit.windowMs / bulkPermits(this.limit), blockedMs };
  }

  /** Writes the row that is permit, intent and history in one; the right to send begins with the transaction's commit. */
  async grant(
    tx: PoolClient,
    window: CallWindow,
    call: { personId: string; operation: string; lane: Lane },
  ): Promise<CallGrant> {
    const { rows } = await tx.query<CallGrant>(
      `INSERT INTO platform_calls (account, person_id, operation, lane, granted_at, expires_at, worker)
       SELECT $1, $2, $3, $4::lane, now, now + $5 * interval '1 millisecond', $6 FROM clock_timestamp() AS now
       RETURNING id, granted_at AS "grantedAt"`,
      [this.account, call.personId, call.operation, call.lane, this.holdMs, this.worker],
    );
    if (call.lane === 'bulk') {
      const bulkNextAt = nextBulkAt(window, this.limit);
      await tx.query('UPDATE call_budgets SET bulk_next_at = $2 WHERE account = $1', [this.account, bulkNextAt]);
    }
    return rows[0] as CallGrant;
  }

  /** Records the answer; the permit stays occupied for one window from now, or is freed when nothing was sent. */
  async settle(tx: PoolClient, grant: CallGrant, result: CallOutcome): Promise<void> {
    await tx.query(
      `UPDATE platform_calls SET outcome = $2, status = $3::int, duration_ms = $4, answered_at = clock_timestamp(),
         expires_at = CASE
           WHEN NOT $5::boolean THEN clock_timestamp()
           WHEN $3::int IS NOT NULL THEN clock_timestamp() + $6 * interval '1 millisecond'
           ELSE expires_at END
       WHERE id = $1`,
      [grant.id, result.outcome, result.status, Math.round(result.durationMs), result.reached, this.limit.windowMs],
    );
    if (result.rateLimited) await this.pause(tx, grant, result.rateLimited.retryAfterMs);
    else if (result.status !== null) {
      await tx.query(
        'UPDATE call_budgets SET failures = 0 WHERE account = $1 AND failures > 0 AND (blocked_until IS NULL OR blocked_until < $2)',
        [this.account, grant.grantedAt],
      );
    }
  }

  /** Whether the newest calls of an operation, each for another person, got no readable answer. */
  async isUnanswered(tx: PoolClient, operation: string): Promise<boolean> {
    const { rows } = await tx.query<{ unanswered: boolean }>(
      `SELECT count(DISTINCT person_id) = ${UNANSWERED} AND bool_and(outcome = 'unknown-outcome') AS unanswered
       FROM ${newestOutcomes('account = $1 AND operation = $2')}`,
      [this.account, operation],
    );
    return rows[0]?.unanswered ?? false;
  }

  private async pause(tx: PoolClient, grant: CallGrant, retryAfterMs: number | undefined): Promise<void> {
    const { rows } = await tx.query<{ failures: number }>(
      `SELECT failures + CASE WHEN $2 < blocked_until THEN 0 ELSE 1 END AS failures
       FROM call_budgets WHERE account = $1 FOR UPDATE`,
      [this.account, grant.grantedAt],
    );
    const failures = rows[0]?.failures ?? 1;
    // A shorter pause never overwrites a longer one.
    await tx.query(
      `UPDATE call_budgets SET failures = $2,
         blocked_until = greatest(blocked_until, clock_timestamp() + $3 * interval '1 millisecond') WHERE account = $1`,
      [this.account, failures, pauseMs(retryAfterMs, Math.max(1, failures), this.random.fraction())],
    );
  }
}
