import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { BATCH_BY_KEY, IN_BATCH } from '../model/batch-rows.js';
import { RECORD } from '../model/import-sql.js';
import type { ImportRecord } from '../model/import-types.js';

/** Which imports were steered, and how far their people have followed. */
@Injectable()
export class SteeringRepository {
  constructor(private readonly database: Database) {}

  /** Imports whose people have not all followed the last word. */
  async open(): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ id: string }>(
      'SELECT id FROM imports WHERE steered_to IS NOT NULL ORDER BY staged_at',
    );
    return rows.map(({ id }) => id);
  }

  /** Locks one of them for a batch. @returns undefined when all have followed */
  async lock(tx: PoolClient, id: string): Promise<ImportRecord | undefined> {
    await tx.query(BATCH_BY_KEY);
    const { rows } = await tx.query<ImportRecord>(
      `SELECT ${RECORD} FROM imports WHERE id = $1 AND steered_to IS NOT NULL FOR NO KEY UPDATE`,
      [id],
    );
    return rows[0];
  }

  /** The number of the last row. */
  async lastRow(tx: PoolClient, id: string): Promise<number> {
    const { rows } = await tx.query<{ last: number | null }>(
      'SELECT max(row_no) AS last FROM import_rows WHERE import_id = $1',
      [id],
    );
    return rows[0]?.last ?? 0;
  }

  /** Holds back the people of pending ones of some rows; calls under way finish. Interactive work is left alone. */
  async hold(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<void> {
    // As a condition it would invite the planner to read all open rows, by their index, for those of the batch.
    const { rows } = await tx.query<{ id: string; at: string; isOpen: boolean }>(
      `SELECT r.person_id AS id, r.person_wanted_at::text AS at, r.outcome = 'pending' AND r.applied AS "isOpen"
       FROM import_rows r WHERE ${IN_BATCH} AND r.person_id IS NOT NULL`,
      [importId, rowNos],
    );
    const open = rows.filter(({ isOpen }) => isOpen);
    await tx.query(
      `UPDATE people SET paused_by_import = $1 WHERE id = ANY (ARRAY(
         SELECT p.id FROM unnest($2::uuid[], $3::timestamptz[]) AS wish(id, at)
         JOIN people p ON p.id = wish.id AND p.wanted_at = wish.at
         WHERE p.lane = 'bulk' AND p.paused_by_import IS NULL ORDER BY p.id FOR NO KEY UPDATE OF p))`,
      [importId, open.map(({ id }) => id), open.map(({ at }) => at)],
    );
  }

  /** @param row the last that followed; null: all have */
  async followed(tx: PoolClient, id: string, row: number | null): Promise<void> {
    await tx.query('UPDATE imports SET steered_to = $2 WHERE id = $1', [id, row]);
  }
}
