import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';

/** Sessions that events, their readers or their age make due. */
export const EVENT_LANE = 0;

/** Sessions that are fetched again because all since a moment were asked for. */
export const BULK_LANE = 1;

/** Sessions that one process fetches side by side. */
export const FETCHES_AT_ONCE = 4;

/** Sessions that are still to be fetched. */
export interface PendingRefreshes {
  /** Due, and never failed since. */
  pending: number;
  /** Whose last fetch failed; they are tried again by themselves. */
  failing: number;
}

/** Rows that one statement makes due: their locks hold up no event for long. */
const BATCH = 500;

/** A fetch of another kind has failed, not this one. */
const WANTED = `wanted_generation = wanted_generation + 1, due_at = clock_timestamp(), failures = 0, fault = NULL`;

/** Makes sessions due on request. */
@Injectable()
export class WantedRefreshes {
  constructor(private readonly database: Database) {}

  /** Makes one session due, at once. @param id ours @returns how many: none when the platform's is not known */
  async wantOne(id: string): Promise<number> {
    const { rowCount } = await this.database.pool.query(
      `UPDATE sessions SET ${WANTED}, lane = ${EVENT_LANE} WHERE id = $1 AND session_id IS NOT NULL`,
      [id],
    );
    return rowCount ?? 0;
  }

  /**
   * Makes every session due with an event or a change since a moment, after those that events make due.
   *
   * @returns how many
   */
  wantSince(since: Date): Promise<number> {
    // A view of that moment is read to its end while the rows are changed beside it, some at a time.
    return this.database.transaction(async (reader) => {
      await reader.query(
        `DECLARE changed NO SCROLL CURSOR FOR SELECT id FROM sessions
         WHERE greatest(created_at, updated_at, last_event_at) >= '${since.toISOString()}' AND session_id IS NOT NULL`,
      );
      for (let count = 0; ; ) {
        const { rows } = await reader.query<{ id: string }>(`FETCH ${BATCH} FROM changed`);
        if (rows.length === 0) return count;
        count += await this.database.transaction((tx) => wantBatch(tx, rows));
      }
    }, 'bulk');
  }

  /** Counts the sessions that have not been fetched since the last event of each. */
  async countWanted(): Promise<PendingRefreshes> {
    const { rows } = await this.database.pool.query<PendingRefreshes>(
      `SELECT count(*) FILTER (WHERE fault IS NULL)::int AS pending, count(fault)::int AS failing FROM sessions
       WHERE wanted_generation > fetched_generation AND due_at IS NOT NULL`,
    );
    return rows[0] ?? { pending: 0, failing: 0 };
  }
}

/** What an event has made due already stays before the rest. */
async function wantBatch(tx: PoolClient, rows: readonly { id: string }[]): Promise<number> {
  const { rowCount } = await tx.query(
    `WITH locked AS (SELECT id FROM sessions WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE)
     UPDATE sessions SET ${WANTED}, lane = CASE WHEN due_at IS NOT NULL AND wanted_generation > fetched_generation
         THEN lane ELSE ${BULK_LANE} END
     WHERE id = ANY (ARRAY(SELECT id FROM locked))`,
    [rows.map(({ id }) => id)],
  );
  return rowCount ?? 0;
}
