import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { BATCH_BY_KEY } from '../model/batch-rows.js';
import { APPLYING, RECORD, TO_PREPARE } from '../model/import-sql.js';
import type { ImportRecord } from '../model/import-types.js';

const MAY_BE_ATTEMPTED = '(attempt_at IS NULL OR attempt_at <= clock_timestamp())';

/** Milliseconds without a batch after which whoever applied an import counts as dead; a batch takes a fraction of it. */
const SILENT_MS = 5_000;

/** Which import is to be planned or applied, and how far that came. */
@Injectable()
export class PreparationRepository {
  constructor(private readonly database: Database) {}

  /** Whether any import waits to be planned or applied. */
  async isAnyDue(): Promise<boolean> {
    const { rowCount } = await this.database.pool.query(
      `SELECT 1 FROM imports WHERE ${TO_PREPARE} AND ${MAY_BE_ATTEMPTED} LIMIT 1`,
    );
    return rowCount !== 0;
  }

  /**
   * Begins with the import whose turn it is to be planned or applied: one that is being applied, then in the order in
   * which they were read to their ends. One that is being steered at this moment is waited for: passed over, it would be
   * applied after those behind it. One that could not be prepared lets others pass until it is attempted again.
   *
   * @returns undefined when there is none, or another process is at it
   */
  async beginNext(tx: PoolClient): Promise<ImportRecord | undefined> {
    const { rows } = await tx.query<{ id: string; isTaken: boolean }>(
      `SELECT id, ${APPLYING} AND alive_at > clock_timestamp() - $1 * interval '1 millisecond' AS "isTaken"
       FROM imports WHERE ${TO_PREPARE} AND ${MAY_BE_ATTEMPTED}
       ORDER BY ${APPLYING} DESC, staged_at LIMIT 1 FOR NO KEY UPDATE`,
      [SILENT_MS],
    );
    const [next] = rows;
    if (!next || next.isTaken) return undefined;
    const begun = await tx.query<ImportRecord>(
      `UPDATE imports SET attempts = attempts + 1, alive_at = clock_timestamp(),
         state = CASE state WHEN 'planned' THEN 'running' ELSE state END,
         applied_at = CASE WHEN state = 'staging' THEN applied_at ELSE coalesce(applied_at, clock_timestamp()) END
       WHERE id = $1 RETURNING ${RECORD}`,
      [next.id],
    );
    return begun.rows[0];
  }

  /** The plan was made. @returns false when the import ended meanwhile */
  async planned(tx: PoolClient, id: string, mayApply: boolean): Promise<boolean> {
    const { rowCount } = await tx.query(
      `UPDATE imports SET state = CASE WHEN $2 THEN 'running' ELSE 'planned' END, apply_wanted = $2, attempts = 0,
         attempt_at = NULL, alive_at = clock_timestamp(), applied_at = CASE WHEN $2 THEN clock_timestamp() END
       WHERE id = $1 AND state = 'staging'`,
      [id, mayApply],
    );
    return rowCount === 1;
  }

  /**
   * Locks an import for one batch, whose statements the planner then takes by key alone: it knows nothing yet of rows that
   * were read or applied a moment ago.
   *
   * @returns false when it is not to be applied any more
   */
  async lockApplying(tx: PoolClient, id: string): Promise<boolean> {
    await tx.query(BATCH_BY_KEY);
    const { rowCount } = await tx.query(
      `UPDATE imports SET alive_at = clock_timestamp() WHERE id = $1 AND ${APPLYING}`,
      [id],
    );
    return rowCount === 1;
  }

  /** It got on: attempts are counted anew. */
  async gotOn(tx: PoolClient, id: string): Promise<void> {
    await tx.query('UPDATE imports SET attempts = 0 WHERE id = $1 AND attempts > 0', [id]);
  }

  /** Everybody is wanted, and may go. */
  async applied(tx: PoolClient, id: string): Promise<void> {
    await tx.query(
      `UPDATE imports SET apply_wanted = false, attempts = 0, attempt_at = NULL WHERE id = $1 AND ${APPLYING}`,
      [id],
    );
  }

  /** Puts an import off that could not be prepared. */
  async attemptAgain(tx: PoolClient, id: string, afterMs: number): Promise<void> {
    await tx.query(
      `UPDATE imports SET attempt_at = clock_timestamp() + $2 * interval '1 millisecond' WHERE id = $1 AND ${TO_PREPARE}`,
      [id, afterMs],
    );
  }

  /** Imports that could not be prepared and wait for another attempt. */
  async putOff(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM imports WHERE ${TO_PREPARE} AND attempts > 0 AND attempt_at IS NOT NULL`,
    );
    return rows[0]?.count ?? 0;
  }
}
