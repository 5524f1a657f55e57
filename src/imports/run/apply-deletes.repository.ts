import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { IN_BATCH, ofPerson } from '../model/batch-rows.js';
import { PROVIDER_IN_USE } from '../plan/deletes.repository.js';

/** The absences that a snapshot planned. */
@Injectable()
export class ApplyDeletesRepository {
  /** Wants the people of a batch, who are locked, to be gone; a provider whom a client still names is left alone. */
  async apply(tx: PoolClient, importId: string, isProviders: boolean, batch: number[]): Promise<void> {
    if (isProviders) {
      await tx.query(
        `UPDATE import_rows r SET outcome = 'skipped', code = $3, hint = $4, field = 'providers'
         WHERE ${IN_BATCH} AND r.outcome = 'pending'
           AND (SELECT true FROM client_providers cp JOIN people c ON c.id = cp.client_id
             WHERE cp.provider_id = r.person_id AND c.wanted LIMIT 1)`,
        [importId, batch, PROVIDER_IN_USE.code, PROVIDER_IN_USE.hint],
      );
    }
    const { rows } = await tx.query<{ id: string; rowNo: number }>(
      `SELECT r.person_id AS id, r.row_no AS "rowNo" FROM import_rows r WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
      [importId, batch],
    );
    await tx.query(
      `UPDATE people p SET wanted = false, fault = NULL, review = NULL, retry_at = NULL, failures = 0,
         checked_absent_at = NULL, wanted_at = clock_timestamp(),
         paused_by_import = CASE WHEN p.due_at IS NULL OR p.lane = 'bulk' THEN $1::uuid END,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END, state = 'deleting', step = NULL,
         updated_at = clock_timestamp(), due_at = clock_timestamp() + gone.row_no * interval '1 microsecond'
       FROM unnest($2::uuid[], $3::int[]) AS gone(id, row_no) WHERE p.id = gone.id AND p.id = ANY ($2::uuid[])`,
      [importId, rows.map(({ id }) => id), rows.map(({ rowNo }) => rowNo)],
    );
    await tx.query(
      `UPDATE import_rows r SET person_wanted_at = ${ofPerson('p.wanted_at')} WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
      [importId, batch],
    );
  }
}
