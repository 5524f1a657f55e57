import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { Guard } from '../model/import-guards.js';
import type { ImportRecord } from '../model/import-types.js';
import { GuardsRepository } from '../plan/guards.repository.js';
import { PlanRepository } from '../plan/plan.repository.js';

/** Takes up again what an import did not get done. */
@Injectable()
export class RetryRepository {
  constructor(
    private readonly plans: PlanRepository,
    private readonly guards: GuardsRepository,
  ) {}

  /**
   * Plans skipped rows anew, to be applied, with the lists as they are now where the files left or added to them, and
   * releases the people of failed rows and of those in review.
   *
   * @returns what it does in the large; undefined when there is nothing of it: the import stays as it is
   */
  async retry(tx: PoolClient, record: ImportRecord): Promise<Guard[] | undefined> {
    const { rows: skipped } = await tx.query<{ rowNo: number }>(
      `UPDATE import_rows SET outcome = 'pending', code = NULL, hint = NULL, person_id = NULL, planned = NULL, applied = false,
         providers = CASE WHEN added_providers IS NULL THEN providers END
       WHERE import_id = $1 AND outcome = 'skipped' AND code = 'changed-since-plan' AND planned <> 'delete'
       RETURNING row_no AS "rowNo"`,
      [record.id],
    );
    if (skipped.length > 0) await this.plans.plan(tx, { ...record, mode: 'upsert' });
    const people = await this.reopen(tx, record.id);
    if (skipped.length === 0 && people.length === 0) return undefined;
    const rowNos = skipped.map(({ rowNo }) => rowNo);
    const guards = await this.guards.evaluateThresholds(tx, record.id, rowNos);
    await tx.query(
      `UPDATE people p SET fault = NULL, retry_at = NULL, failures = 0, lost_creates = 0, checked_absent_at = NULL, paused_by_import = NULL,
         review = CASE WHEN review = 'platform-user-missing' THEN review END,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END,
         state = CASE WHEN p.wanted THEN 'pending' ELSE 'deleting' END::person_state,
         step = NULL, due_at = clock_timestamp(), updated_at = clock_timestamp()
       WHERE p.id = ANY($1) AND p.state IN ('failed', 'needs-review', 'waiting', 'pending')`,
      [people],
    );
    return guards;
  }

  /** A row of which neither the profile nor the snapshot before it is kept stays as it is. */
  private async reopen(tx: PoolClient, importId: string): Promise<string[]> {
    const { rows } = await tx.query<{ id: string }>(
      `UPDATE import_rows r SET outcome = 'pending', code = NULL, hint = NULL FROM people p
       WHERE r.import_id = $1 AND r.outcome IN ('failed', 'needsReview') AND p.id = r.person_id
         AND (r.profile IS NOT NULL OR r.planned = 'delete' AND r.was IS NOT NULL) RETURNING p.id`,
      [importId],
    );
    return rows.map((row) => row.id);
  }
}
