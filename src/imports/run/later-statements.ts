import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { IS_OPEN } from '../model/open-imports.js';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { isFilled } from '../plan/row-sql.js';
import { IS_UNCLEAR } from '../plan/snapshot-deletes.repository.js';

/** Codes of rows that another row of the same import replaces, and of rows that cannot take effect. */
const REPLACED: Rejection['code'][] = ['repeated', 'older-version'];
const WITHOUT_EFFECT: Rejection['code'][] = ['provider-in-use', 'provider-gone', 'changed-since-plan'];

/** SQL condition: import `i` was applied and counts. */
export const IS_APPLIED = `i.applied_at IS NOT NULL AND i.state NOT IN ('cancelled', 'failed')`;

/** Lets the latest statement of the EHR win over all imports, in whatever order they are applied. */
@Injectable()
export class LaterStatements {
  /**
   * Which of some rows don't count, because an applied import that was opened later names their people. A rejected row
   * says nothing, and a row without effect counts only against a deletion. A snapshot also counts for people that it does
   * not name, unless one of its rows does not name its person.
   */
  async outdated(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<Set<number>> {
    const { rows: later } = await tx.query<{ id: string }>(
      `SELECT i.id FROM imports i WHERE i.opened_at > (SELECT opened_at FROM imports WHERE id = $1) AND ${IS_APPLIED}`,
      [importId],
    );
    const outdated = new Set<number>();
    for (const { id } of later) {
      const { rows } = await tx.query<{ rowNo: number }>(
        `WITH own AS MATERIALIZED (
           SELECT row_no, kind, external_id, planned FROM import_rows WHERE import_id = $1 AND row_no = ANY ($2::int[])),
         named AS MATERIALIZED (
           SELECT kind, external_id, bool_or(outcome <> 'rejected' AND coalesce(code <> ALL ($5::text[]), true)) AS has_effect,
             bool_or(says <> 'deleted') AS is_there
           FROM import_rows WHERE import_id = $3 AND external_id = ANY (ARRAY(SELECT external_id FROM own))
             AND coalesce(code <> ALL ($4::text[]), true)
           GROUP BY kind, external_id),
         whole AS MATERIALIZED (
           SELECT DISTINCT r.kind FROM import_rows r JOIN imports i ON i.id = r.import_id
           WHERE r.import_id = $3 AND i.mode = 'snapshot'
             AND NOT EXISTS (SELECT FROM import_rows WHERE import_id = $3 AND ${IS_UNCLEAR}))
         SELECT row_no AS "rowNo" FROM own r WHERE CASE WHEN r.planned = 'delete'
           THEN (r.kind, r.external_id) IN (SELECT kind, external_id FROM named WHERE has_effect OR is_there)
           ELSE (r.kind, r.external_id) IN (SELECT kind, external_id FROM named WHERE has_effect)
             OR r.kind IN (SELECT kind FROM whole) AND r.external_id NOT IN (
               SELECT external_id FROM named UNION ALL SELECT unnest(mentioned) FROM imports WHERE id = $3) END`,
        [importId, rowNos, id, REPLACED, WITHOUT_EFFECT],
      );
      for (const { rowNo } of rows) outdated.add(rowNo);
    }
    return outdated;
  }

  /**
   * Begins to apply an import: from now on, the rows of earlier imports are outdated. Called in the transaction that
   * makes it running. Rows for which the plan had nothing to do are applied, too, if an earlier import has changed their
   * people since.
   */
  async begin(tx: PoolClient, importId: string): Promise<void> {
    // Waits for batches of earlier imports, which don't know of this one, and lets none begin.
    await tx.query(
      `SELECT FROM imports o WHERE o.opened_at < (SELECT opened_at FROM imports WHERE id = $1) AND (${IS_OPEN} OR o.withdraws)
       ORDER BY o.opened_at DESC FOR NO KEY UPDATE`,
      [importId],
    );
    const isEarlier = '(p.id IS NULL OR p.stated_at < (SELECT opened_at FROM imports WHERE id = $1))';
    const { code, hint } = rejection('changed-since-plan');
    await tx.query(
      `UPDATE import_rows r SET code = CASE WHEN n.applies THEN NULL ELSE $2 END, hint = CASE WHEN n.applies THEN NULL ELSE $3 END,
         outcome = CASE WHEN n.applies THEN 'pending' ELSE 'skipped' END::row_outcome,
         phase = CASE WHEN n.applies THEN CASE WHEN r.says = 'deleted' THEN CASE r.kind WHEN 'client' THEN 3 ELSE 4 END
           WHEN r.kind = 'provider' THEN 1 ELSE 2 END END,
         planned = CASE WHEN r.says = 'deleted' THEN 'delete' WHEN n.is_new THEN 'create-or-link'
           WHEN r.kind = 'client' THEN 'provider-change' ELSE 'attribute-change' END
       FROM (
         SELECT r.row_no, ${isEarlier} AND (r.says = 'deleted' OR ${isFilled('r.profile')}) AS applies,
           p.wanted IS NOT TRUE OR p.platform_user_id IS NULL AS is_new
         FROM import_rows r LEFT JOIN people p ON p.kind = r.kind AND p.external_id = r.external_id
         WHERE r.import_id = $1 AND (
           r.says = 'person' AND r.outcome IN ('unchanged', 'needsReview') AND r.phase IS NULL
             AND p.wanted_version IS DISTINCT FROM r.person_version
           OR r.says = 'deleted' AND r.outcome = 'skipped' AND r.code = $4 AND p.wanted)) AS n
       WHERE r.import_id = $1 AND r.row_no = n.row_no`,
      [importId, code, hint, rejection('already-deleted').code],
    );
    // Whom this import names, too, no cancel of an earlier one withdraws.
    await tx.query(
      `UPDATE people p SET new_by_import = NULL FROM import_rows r
       WHERE r.import_id = $1 AND r.outcome = 'needsReview' AND p.new_by_import IS NOT NULL AND p.id = r.person_id`,
      [importId],
    );
  }
}
