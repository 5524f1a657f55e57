import type { Database } from '../../database/database.js';
import { numberCommitted } from '../../feed/commit-order.js';

/** Maximum sessions of one statement, so that their locks do not delay events for long. */
const BATCH = 200;

const NUMBERING = {
  lock: 727_011,
  // ORDER BY selects the partial index.
  pending: 'SELECT FROM sessions WHERE changed ORDER BY id LIMIT 1',
  // A session that another transaction is changing is numbered after that transaction.
  assign: `
    WITH picked AS MATERIALIZED (
      SELECT id, greatest(created_at, last_event_at, fetched_at) AS at FROM sessions
      WHERE changed ORDER BY id LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED
    ), last AS MATERIALIZED (
      SELECT greatest(date_trunc('milliseconds', clock_timestamp()), max(updated_at)) AS at FROM sessions
    ), numbered AS MATERIALIZED (
      SELECT id, row_number() OVER (ORDER BY at, id) * interval '1 millisecond' AS after FROM picked)
    UPDATE sessions s SET changed = false,
      updated_at = (SELECT last.at + numbered.after FROM last, numbered WHERE numbered.id = s.id)
    WHERE s.id = ANY (ARRAY(SELECT id FROM picked))`,
};

/**
 * Assigns `updated_at` to changed sessions after the commit of their change, strictly increasing, at most a batch. A reader
 * that continues from the largest `updatedAt` therefore misses no change, although transactions do not commit in the order
 * of their times.
 */
export async function numberSessions(database: Database): Promise<void> {
  await numberCommitted(database, NUMBERING, BATCH);
}
