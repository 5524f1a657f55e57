import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';

/** Any fixed number: the transaction that assigns `updated_at` holds this advisory lock. */
const NUMBERING_LOCK = 727_011;

/** Maximum sessions of one statement, so that their locks do not delay events for long. */
const BATCH = 1_000;

/**
 * Assigns `updated_at` to changed sessions after the commit of their change, strictly increasing. A reader that continues
 * from the largest `updatedAt` therefore misses no change, although transactions do not commit in the order of their times.
 */
@Injectable()
export class SessionNumbering {
  constructor(private readonly database: Database) {}

  /**
   * Numbers the committed changes, at most a batch. Skips sessions that another transaction is changing, because that
   * change is numbered after its commit.
   */
  async number(): Promise<void> {
    // ORDER BY selects the partial index.
    const { rowCount } = await this.database.pool.query('SELECT FROM sessions WHERE changed ORDER BY id LIMIT 1');
    if (rowCount === 0) return;
    await this.database.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock($1)', [NUMBERING_LOCK]);
      await tx.query(
        `WITH picked AS MATERIALIZED (
           SELECT id, greatest(created_at, last_event_at, fetched_at) AS at FROM sessions
           WHERE changed ORDER BY id LIMIT ${BATCH} FOR NO KEY UPDATE SKIP LOCKED
         ), last AS MATERIALIZED (
           SELECT greatest(date_trunc('milliseconds', clock_timestamp()), max(updated_at)) AS at FROM sessions
         ), numbered AS (
           SELECT id, row_number() OVER (ORDER BY at, id) * interval '1 millisecond' AS after FROM picked)
         UPDATE sessions s SET changed = false, updated_at = last.at + numbered.after
         FROM numbered, last WHERE s.id = numbered.id`,
      );
    });
  }
}
