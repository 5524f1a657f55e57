import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { type ErasedCopies, type ErasedPerson, ErasesCopies } from '../people/store/erasure.js';
import { noneIfDamaged } from '../vault/unreadable-value.js';
import { ERASED } from './model/import.js';
import { StagingRepository } from './upload/staging.repository.js';

/** A row `r` that names the person with the ids $2 of the kind $1. The other conditions are those of the index on external ids. */
const OF_PERSON = 'r.external_id = ANY ($2::text[]) AND (r.kind = $1 OR r.kind IS NULL)';

/** A row `r` whose import is not planned yet: what it says is needed for the plan. */
const IS_UNPLANNED = `(r.outcome = 'pending' AND r.planned IS NULL)`;

/** A row `r` that was to be applied: a deletion that came after it counts. */
const IS_WAITING = `(r.outcome = 'pending' AND NOT r.applied)`;

/** What imports keep of people who were deleted. */
@Injectable()
export class ImportErasure {
  constructor(private readonly staging: StagingRepository) {}

  /** Empties the rows that name a person, and deletes what they were read as. */
  @ErasesCopies('rows of imports')
  async erase(tx: PoolClient, { kind, externalIds }: ErasedPerson): Promise<ErasedCopies> {
    const { rows } = await tx.query<{ importId: string; emptied: number[]; rejected: number[] }>(
      `WITH emptied AS (
         UPDATE import_rows r SET profile = NULL, was = NULL, was_profile = NULL, profile_hash = NULL, email_fingerprint = NULL,
           outcome = CASE WHEN ${IS_WAITING} THEN 'skipped' ELSE r.outcome END,
           code = CASE WHEN ${IS_WAITING} OR r.code = 'changed-since-plan' THEN $3 ELSE r.code END,
           hint = CASE WHEN ${IS_WAITING} OR r.code = 'changed-since-plan' THEN $4 ELSE r.hint END
         WHERE ${OF_PERSON} AND (r.profile IS NOT NULL OR r.was IS NOT NULL) AND NOT ${IS_UNPLANNED}
         RETURNING r.import_id, r.row_no),
       named AS (
         SELECT import_id, row_no, true AS is_emptied FROM emptied
         UNION ALL SELECT r.import_id, r.row_no, false FROM import_rows r
         WHERE ${OF_PERSON} AND r.outcome = 'rejected')
       SELECT import_id AS "importId", coalesce(array_agg(row_no) FILTER (WHERE is_emptied), '{}') AS emptied,
         coalesce(array_agg(row_no) FILTER (WHERE NOT is_emptied), '{}') AS rejected
       FROM named GROUP BY import_id ORDER BY import_id`,
      [kind, externalIds, ERASED.code, ERASED.hint],
    );
    let erased = 0;
    for (const { importId, emptied, rejected } of rows) {
      await this.forgetRaw(tx, importId, emptied);
      erased += emptied.length + (await this.forgetRaw(tx, importId, rejected));
    }
    return { rows: erased };
  }

  /** Takes rows out of the blocks that hold them as they were read. @returns how many there were */
  private async forgetRaw(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<number> {
    const { rows } = await tx.query<{ firstRow: number }>(
      `SELECT first_row AS "firstRow" FROM import_raw_rows WHERE import_id = $1 AND EXISTS (
         SELECT 1 FROM unnest($2::int[]) AS n (row_no) WHERE n.row_no BETWEEN first_row AND last_row) FOR UPDATE`,
      [importId, rowNos],
    );
    let forgotten = 0;
    for (const { firstRow } of rows) {
      // Of a block that does not open nothing can be kept apart.
      const block = new Map(await this.staging.blockOf(importId, firstRow, tx).catch(noneIfDamaged));
      for (const rowNo of rowNos) forgotten += Number(block.delete(rowNo));
      await tx.query('UPDATE import_raw_rows SET sealed = $3 WHERE import_id = $1 AND first_row = $2', [
        importId,
        firstRow,
        this.staging.sealAt(importId, firstRow, block),
      ]);
    }
    return forgotten;
  }
}
