import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../database/database.js';

/** A delivery that is due, locked by the transaction that took it. */
export interface DueDelivery {
  id: string;
  signature: Buffer;
  /** Sealed; null when it is large and must be read by itself. */
  body: Buffer | null;
  receivedAt: Date;
  attempts: number;
}

/** What became of a delivery. */
export interface Outcome {
  id: string;
  state: 'processed' | 'ignored' | 'failed' | 'dead';
  eventType: string | null;
  reason: string | null;
  attempts: number;
  /** Milliseconds until the next attempt; null: no more. */
  retryInMs: number | null;
}

/** Bytes of a body that is read together with others; a hundred of the largest would fill the memory. */
const READ_TOGETHER = 64 * 1024;

/** Repeats that are folded in one statement. */
const FOLD = 1_000;

/** Milliseconds that a statement may wait for a row which somebody else holds, and run at all. */
const LIMITS = "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '10s'";

const OUTCOME = `UPDATE webhook_deliveries AS d
  SET state = o.state::delivery_state, event_type = o.event_type, reason = o.reason, attempts = o.attempts,
      due_at = now() + make_interval(secs => o.retry_in_ms / 1000.0),
      processed_at = CASE WHEN o.state IN ('processed', 'ignored') THEN now() ELSE d.processed_at END
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::int[], $6::float8[])
    AS o (id, state, event_type, reason, attempts, retry_in_ms)
  WHERE d.id = o.id`;

/** The inbox as the drain sees it. */
@Injectable()
export class InboxRepository {
  constructor(private readonly database: Database) {}

  /** Runs work on a batch in one transaction. */
  transaction<T>(work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.database.transaction(async (tx) => {
      await tx.query(LIMITS);
      return work(tx);
    });
  }

  /** Takes due deliveries that no other worker holds, those that wait longest first. */
  async take(tx: pg.PoolClient, limit: number): Promise<DueDelivery[]> {
    const { rows } = await tx.query<DueDelivery>({
      name: 'take-deliveries',
      text: `SELECT id::text AS id, signature, received_at AS "receivedAt", attempts,
                    CASE WHEN octet_length(body) <= ${READ_TOGETHER} THEN body END AS body
             FROM webhook_deliveries WHERE due_at <= now()
             ORDER BY due_at, id LIMIT $1 FOR UPDATE SKIP LOCKED`,
      values: [limit],
    });
    return rows;
  }

  /** The sealed body of one delivery. */
  async body(tx: pg.PoolClient, id: string): Promise<Buffer> {
    const { rows } = await tx.query<{ body: Buffer }>('SELECT body FROM webhook_deliveries WHERE id = $1', [id]);
    const [row] = rows;
    if (!row)
      throw new Error(`The delivery ${id} is gone from the inbox while it is locked; check for manual deletes.`);
    return row.body;
  }

  /** Writes what became of deliveries. @param tx without one the write stands by itself */
  async settle(outcomes: readonly Outcome[], tx?: pg.PoolClient): Promise<void> {
    if (outcomes.length === 0) return;
    await (tx ?? this.database.pool).query({
      name: 'settle-deliveries',
      text: OUTCOME,
      values: [
        outcomes.map((outcome) => outcome.id),
        outcomes.map((outcome) => outcome.state),
        outcomes.map((outcome) => outcome.eventType),
        outcomes.map((outcome) => outcome.reason),
        outcomes.map((outcome) => outcome.attempts),
        outcomes.map((outcome) => outcome.retryInMs),
      ],
    });
  }

  /** Reopens the deliveries that were sent again. @returns how many repeats were folded; at most a batch */
  async foldRepeats(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `WITH heard AS (
         DELETE FROM webhook_repeats WHERE id IN
           (SELECT id FROM webhook_repeats ORDER BY id LIMIT ${FOLD} FOR UPDATE SKIP LOCKED)
         RETURNING signature, times
       ), reopened AS (
         UPDATE webhook_deliveries AS d
         SET repeats = d.repeats + h.times, state = 'received', reason = NULL, attempts = 0, due_at = now()
         FROM (SELECT signature, sum(times)::int AS times FROM heard GROUP BY signature) AS h
         WHERE d.signature = h.signature
       )
       SELECT count(*)::int AS count FROM heard`,
    );
    return rows[0]?.count ?? 0;
  }

  /** How long the longest waiting delivery or repeat has been due, in seconds; null when nothing is. */
  async oldestDueSeconds(): Promise<number | null> {
    const { rows } = await this.database.pool.query<{ seconds: number | null }>(
      `SELECT extract(epoch FROM now() - min(due))::float8 AS seconds FROM (
         (SELECT due_at AS due FROM webhook_deliveries WHERE due_at <= now() ORDER BY due_at LIMIT 1)
         UNION ALL
         (SELECT received_at FROM webhook_repeats ORDER BY id LIMIT 1)
       ) AS waiting`,
    );
    return rows[0]?.seconds ?? null;
  }

  /** Deliveries that still want work, now or later. */
  async countOpen(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM webhook_deliveries WHERE due_at IS NOT NULL',
    );
    return rows[0]?.count ?? 0;
  }

  /** How many deliveries were given up. */
  async countDead(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM webhook_deliveries WHERE state = 'dead'`,
    );
    return rows[0]?.count ?? 0;
  }
}
