import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database, prepared } from '../../database/database.js';

/** A delivery that a worker has taken. */
export interface TakenDelivery {
  id: string;
  signature: Buffer;
  /** Encrypted. */
  body: Buffer;
  receivedAt: Date;
  /** When it was received or, if it was processed before, when it was sent or replayed again. */
  waitingSince: Date;
  /** Failed ones. */
  attempts: number;
  /** Takes since the last outcome, this one included. The process of an earlier one ended during the work. */
  takes: number;
  /** When other workers may take it; identifies the take. */
  takenUntil: Date;
}

/** The result of an attempt. An event type or subject that is not given stays as stored. */
export interface Outcome {
  /** `received` if it was not an attempt after all. */
  state: 'received' | 'processed' | 'ignored' | 'not-understood' | 'failed' | 'dead';
  eventType?: string | null;
  /** The platform's id of what the event is about, if known. */
  subject?: string | null;
  reason?: string;
  /** The new number of failed attempts; unchanged by default. */
  attempts?: number;
  /** Milliseconds until the next attempt; none by default. */
  retryInMs?: number;
}

export type Outcomes = ReadonlyMap<TakenDelivery, Outcome>;

/** How long a taken delivery is hidden from other workers. */
const VISIBILITY = "interval '30 seconds'";

/** Maximum repeats per statement. */
const MAX_FOLDED = 1_000;

/** Timeouts for a lock, and for a whole statement. */
const SET_LIMITS = "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '10s'";

/**
 * Takes the deliveries that have been due longest. One that was taken before and has no outcome may end the process
 * again, so it is taken alone. The commit does not wait for the disk, because it must survive this process only.
 */
const TAKE = `
  WITH no_wait AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)), due AS MATERIALIZED (
    SELECT id, due_at, takes FROM webhook_deliveries WHERE due_at <= now() ORDER BY due_at, id
    LIMIT $1 FOR UPDATE SKIP LOCKED
  ), placed AS (
    SELECT *, row_number() OVER longest AS place, first_value(takes) OVER longest AS first_takes
    FROM due WINDOW longest AS (ORDER BY due_at, id)
  ), taken AS (
    UPDATE webhook_deliveries d SET takes = d.takes + 1, due_at = now() + ${VISIBILITY}
    FROM placed WHERE d.id = placed.id AND (place = 1 OR placed.takes + first_takes = 0)
    RETURNING d.*, placed.due_at AS was_due_at
  )
  SELECT id::text AS id, signature, body, received_at AS "receivedAt", attempts, takes, due_at AS "takenUntil",
    CASE WHEN processed_at IS NULL THEN received_at ELSE was_due_at END AS "waitingSince"
  FROM taken, no_wait ORDER BY taken.id`;

/** Skips deliveries that were sent again, replayed or taken by another worker since the take: they remain due. */
const RECORD = `
  UPDATE webhook_deliveries AS d
  SET state = o.state, event_type = coalesce(o."eventType", d.event_type), subject = coalesce(o.subject, d.subject),
      reason = o.reason, attempts = coalesce(o.attempts, d.attempts), takes = 0,
      due_at = now() + o."retryInMs" * interval '1 millisecond',
      processed_at = CASE WHEN o.state IN ('processed', 'ignored') THEN now() ELSE d.processed_at END
  FROM json_to_recordset($1) AS o (id bigint, "takenUntil" timestamptz, state delivery_state, "eventType" text,
    subject text, reason text, attempts int, "retryInMs" float8)
  WHERE d.id = o.id AND d.due_at = o."takenUntil"`;

/** The inbox as its workers read and write it. */
@Injectable()
export class InboxRepository {
  constructor(private readonly database: Database) {}

  /** Runs the work on a batch in one transaction. */
  transaction<T>(work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.database.transaction(async (tx) => {
      await tx.query(SET_LIMITS);
      return work(tx);
    });
  }

  /** Takes due deliveries, and commits the take before the work, so that a killed process leaves a trace. */
  async take(limit: number): Promise<TakenDelivery[]> {
    return (await this.database.pool.query<TakenDelivery>(prepared(TAKE, [limit]))).rows;
  }

  /** @param sql the transaction of the work; without one, the outcomes are committed on their own */
  async record(outcomes: Outcomes, sql: Pick<pg.PoolClient, 'query'> = this.database.pool): Promise<void> {
    const rows = Array.from(outcomes, ([{ id, takenUntil }, outcome]) => ({ id, takenUntil, ...outcome }));
    await sql.query(prepared(RECORD, [JSON.stringify(rows)]));
  }

  /** Reopens the deliveries that were sent again. @returns the number of repeats, at most `MAX_FOLDED` */
  async foldRepeats(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `WITH repeated AS (
         DELETE FROM webhook_repeats WHERE id IN
           (SELECT id FROM webhook_repeats ORDER BY id LIMIT ${MAX_FOLDED} FOR UPDATE SKIP LOCKED)
         RETURNING signature, times
       ), reopened AS (
         UPDATE webhook_deliveries AS d
         SET repeats = d.repeats + r.times, state = 'received', reason = NULL, attempts = 0, due_at = now()
         FROM (SELECT signature, sum(times)::int AS times FROM repeated GROUP BY signature) AS r
         WHERE d.signature = r.signature
       )
       SELECT count(*)::int AS count FROM repeated`,
    );
    return rows[0]?.count ?? 0;
  }

  /** SQL of the time when the next delivery or repeat is due. */
  nextDue(): string {
    return `least((SELECT due_at FROM webhook_deliveries WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 1),
      (SELECT now() FROM webhook_repeats ORDER BY id LIMIT 1))`;
  }

  /** @param condition constant SQL */
  async count(condition: string): Promise<number> {
    const text = `SELECT count(*)::int AS count FROM webhook_deliveries WHERE ${condition}`;
    return (await this.database.pool.query<{ count: number }>(text)).rows[0]?.count ?? 0;
  }
}
