import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { isFilled } from '../plan/row-sql.js';
import { IS_UNCLEAR } from '../plan/snapshot-deletes.repository.js';

/** Codes of rows that another row of the same import replaces, and of rows that cannot take effect. */
const REPLACED: Rejection['code'][] = ['repeated', 'older-version'];
const WITHOUT_EFFECT: Rejection['code'][] = ['provider-in-use', 'provider-gone', 'changed-since-plan'];

/** SQL condition: import `i` was applied and counts. */
const IS_APPLIED = `i.applied_at IS NOT NULL AND i.state NOT IN ('cancelled', 'failed')`;

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
   * Applies rows for which the plan had nothing to do, if another import has changed their people since. Called once an
   * import is applied, in the same transaction. From then on, the rows of earlier imports are outdated.
   */
  async reopen(tx: PoolClient, importId: string): Promise<void> {
    // Waits for batches of earlier imports, which don't know of this one, and lets none begin.
    await tx.query(
      `SELECT FROM imports i WHERE i.opened_at < (SELECT opened_at FROM imports WHERE id = $1) AND i.state IN ('staging', 'planned', 'running', 'paused')
       ORDER BY i.opened_at DESC FOR NO KEY UPDATE`,
      [importId],
    );
    await tx.query(
      `UPDATE import_rows r SET outcome = 'pending', code = NULL, phase = CASE r.kind WHEN 'provider' THEN 1 ELSE 2 END,
         planned = CASE WHEN NOT p.wanted OR p.platform_user_id IS NULL THEN 'create-or-link'
           WHEN r.kind = 'client' THEN 'provider-change' ELSE 'attribute-change' END
       FROM people p WHERE r.import_id = $1 AND r.outcome IN ('unchanged', 'needsReview') AND ${isFilled('r.profile')}
         AND p.id = r.person_id AND p.wanted_at <> r.person_wanted_at`,
      [importId],
    );
    const { code, hint } = rejection('changed-since-plan');
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = $2, hint = $3 FROM people p
       WHERE r.import_id = $1 AND p.kind = r.kind AND p.external_id = r.external_id
         AND p.wanted_at > (SELECT opened_at FROM imports WHERE id = $1) AND (
         r.outcome = 'unchanged' AND r.says = 'person' AND p.wanted_at <> r.person_wanted_at
         OR r.outcome = 'skipped' AND r.code = $4 AND p.wanted)`,
      [importId, code, hint, rejection('already-deleted').code],
    );
  }
}
