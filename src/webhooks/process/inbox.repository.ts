import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Database } from '../../database/database.js';

/** A delivery that is due, locked by the transaction that took it. */
export interface DueDelivery {
  id: string;
  signature: Buffer;
  /** Sealed. */
  body: Buffer;
  receivedAt: Date;
  /** Since when it waits: when it was received, or, where it was processed before, when it was sent or replayed again. */
  waitingSince: Date;
  attempts: number;
  /** Of the request that brought it. */
  traceparent: string | null;
  /** A process ended while it worked on this delivery alone. */
  isCulprit: boolean;
}

/** What became of a delivery. */
export interface Outcome {
  id: string;
  state: 'received' | 'processed' | 'ignored' | 'not-understood' | 'failed' | 'dead';
  eventType: string | null;
  /** The id of the platform that its event is about, where that is known. */
  subject: string | null;
  reason: string | null;
  attempts: number;
  /** Milliseconds until the next attempt; null: no more. */
  retryInMs: number | null;
}

/** Repeats that are folded in one statement. */
const FOLD = 1_000;

/** Any fixed number: with a subject's hash the lock of the transaction that works on what is about it. */
const SUBJECT_LOCK = 727_009;

/** How long a statement may wait for a lock, and run at all. */
const SET_LIMITS = "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '10s'";

/**
 * The deliveries that wait longest and fit together. One that was taken before without an outcome may end the process
 * again: it is taken alone, and so is one that is larger than a batch. Sizes are known without reading the bodies.
 */
const TAKE = `
  WITH picked AS MATERIALIZED (
    SELECT id, due_at, octet_length(body) AS bytes, coalesce(reason = 'no-outcome', false) AS was_lost
    FROM webhook_deliveries WHERE due_at <= now() ORDER BY due_at, id LIMIT $1 FOR UPDATE SKIP LOCKED
  ), judged AS (
    SELECT p.*, t.alone, p.was_lost OR t.alone IS NOT NULL AS suspect
    FROM picked p LEFT JOIN LATERAL
      (SELECT bool_or(alone) AS alone FROM webhook_claims WHERE delivery_id = p.id) AS t ON true
  ), placed AS (
    SELECT *, row_number() OVER together AS place, sum(bytes) OVER together AS total,
      bool_or(suspect) OVER together AS behind_suspect
    FROM judged WINDOW together AS (ORDER BY due_at, id)
  )
  SELECT d.id::text AS id, d.signature, d.body, d.received_at AS "receivedAt", d.attempts, d.traceparent,
    CASE WHEN d.processed_at IS NULL THEN d.received_at ELSE d.due_at END AS "waitingSince",
    coalesce(placed.alone, false) AS "isCulprit"
  FROM placed JOIN webhook_deliveries d USING (id)
  WHERE place = 1 OR (total <= $2 AND NOT behind_suspect)
  ORDER BY place`;

const RECORD = `
  WITH released AS (DELETE FROM webhook_claims WHERE delivery_id = ANY ($1::bigint[]))
  UPDATE webhook_deliveries AS d
  SET state = o.state::delivery_state, event_type = coalesce(o.event_type, d.event_type), subject = coalesce(o.subject, d.subject),
      reason = o.reason, attempts = o.attempts,
      due_at = now() + make_interval(secs => o.retry_in_ms / 1000.0),
      processed_at = CASE WHEN o.state IN ('processed', 'ignored') THEN now() ELSE d.processed_at END
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::int[], $6::float8[], $7::text[])
    AS o (id, state, event_type, reason, attempts, retry_in_ms, subject)
  WHERE d.id = o.id`;

/** The inbox as its processor reads and writes it. */
@Injectable()
export class InboxRepository {
  constructor(private readonly database: Database) {}

  /** Runs work on a batch in one transaction. */
  transaction<T>(work: (tx: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.database.transaction(async (tx) => {
      await tx.query(SET_LIMITS);
      return work(tx);
    });
  }

  /** Takes the longest due that no other worker holds, in so many rows and bytes; one alone may have more bytes. */
  async take(tx: pg.PoolClient, { rows, bytes }: { rows: number; bytes: number }): Promise<DueDelivery[]> {
    return (await tx.query<DueDelivery>({ name: 'take-deliveries', text: TAKE, values: [rows, bytes] })).rows;
  }

  /** Locks subjects until the transaction ends. @returns those that no other worker has; the empty one is nobody's */
  async lockSubjects(tx: pg.PoolClient, subjects: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const { rows } = await tx.query<{ subject: string }>(
      `SELECT subject FROM unnest($1::text[]) AS subject
       WHERE subject = '' OR pg_try_advisory_xact_lock(${SUBJECT_LOCK}, hashtext(subject))`,
      [[...subjects]],
    );
    return new Set(rows.map(({ subject }) => subject));
  }

  /** Has deliveries taken up later that were taken and not tried: as they are, and with no claim. */
  async putBack(tx: pg.PoolClient, deliveries: readonly DueDelivery[], waitMs: number): Promise<void> {
    if (deliveries.length === 0) return;
    await tx.query(
      `UPDATE webhook_deliveries SET due_at = clock_timestamp() + $2 * interval '1 millisecond'
       WHERE id = ANY ($1::bigint[])`,
      [deliveries.map(({ id }) => id), waitMs],
    );
  }

  /** Claims what was taken, in a commit of its own, so that the claims show which deliveries a crash interrupted. */
  async claim(batch: string, taken: readonly DueDelivery[]): Promise<void> {
    if (taken.length === 0) return;
    await this.database.pool.query(
      'INSERT INTO webhook_claims (delivery_id, take, alone) SELECT unnest($1::bigint[]), $2, $3',
      [taken.map(({ id }) => id), batch, taken.length === 1],
    );
  }

  /** Releases the claims of a batch that failed while its process is alive. */
  async release(batch: string): Promise<void> {
    await this.database.pool.query('DELETE FROM webhook_claims WHERE take = $1', [batch]);
  }

  /** Records outcomes and releases the claims. @param tx without one the writes stand by themselves */
  async recordOutcomes(outcomes: readonly Outcome[], tx?: pg.PoolClient): Promise<void> {
    if (outcomes.length === 0) return;
    await (tx ?? this.database.pool).query({
      name: 'record-outcomes',
      text: RECORD,
      values: [
        outcomes.map((outcome) => outcome.id),
        outcomes.map((outcome) => outcome.state),
        outcomes.map((outcome) => outcome.eventType),
        outcomes.map((outcome) => outcome.reason),
        outcomes.map((outcome) => outcome.attempts),
        outcomes.map((outcome) => outcome.retryInMs),
        outcomes.map((outcome) => outcome.subject),
      ],
    });
  }

  /** Reopens the deliveries that were sent again. @returns how many repeats were folded, at most `FOLD` */
  async foldRepeats(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `WITH repeated AS (
         DELETE FROM webhook_repeats WHERE id IN
           (SELECT id FROM webhook_repeats ORDER BY id LIMIT ${FOLD} FOR UPDATE SKIP LOCKED)
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

  /** SQL of the time when the next delivery is due, or the time since when a repeat waits. */
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
