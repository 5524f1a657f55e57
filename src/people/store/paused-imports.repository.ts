import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';

/** What nobody may be sent for any more, although its people were not all held back yet: there may be a million. */
@Injectable()
export class StoppedImportsRepository {
  /**
   * Holds back somebody, locked by this transaction, whom an import wants that was paused or cancelled just now.
   *
   * @returns whether that is so
   */
  async holdBack(tx: PoolClient, id: string): Promise<boolean> {
    const { rowCount } = await tx.query(
      `UPDATE people p SET paused_by_import = stopped.id FROM (
         SELECT i.id, r.person_wanted_at FROM import_rows r JOIN imports i ON i.id = r.import_id
         WHERE r.person_id = $1 AND r.outcome = 'pending' AND r.applied AND i.steered_to IS NOT NULL AND i.state <> 'running'
       ) AS stopped
       WHERE p.id = $1 AND p.lane = 'bulk' AND p.paused_by_import IS NULL AND p.wanted_at = stopped.person_wanted_at`,
      [id],
    );
    return rowCount === 1;
  }
}
