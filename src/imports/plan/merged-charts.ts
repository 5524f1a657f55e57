import type { PoolClient } from 'pg';
import { IS_OWN_CHART } from '../model/named-rows.js';
import { rejection } from '../parse/row/rejection.js';

/**
 * Settles the rows of charts that were merged in the EHR. A client of its own must be merged here, too, as the hint of its row
 * says. An unknown, deleted or former id needs nothing.
 */
export async function settleMergedCharts(tx: PoolClient, importId: string): Promise<void> {
  const nothing = rejection('merged-record');
  await tx.query(
    `WITH merged AS MATERIALIZED (
       SELECT row_no, (${IS_OWN_CHART('o')}) IS TRUE AS is_own FROM import_rows o
       WHERE o.import_id = $1 AND o.outcome = 'pending' AND o.says = 'merged')
     UPDATE import_rows r SET field = 'externalId', planned = CASE WHEN c.is_own THEN 'rejected' END,
       outcome = CASE WHEN c.is_own THEN 'rejected' ELSE 'skipped' END::row_outcome,
       code = CASE WHEN c.is_own THEN $2 ELSE $3 END, hint = CASE WHEN c.is_own THEN r.hint ELSE $4 END
     FROM merged c WHERE r.import_id = $1 AND r.row_no = c.row_no`,
    [importId, 'merge-needed' satisfies typeof nothing.code, nothing.code, nothing.hint],
  );
}
