import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { namesOneOf } from '../model/names-one-of.js';

/** Foresees who will wait for a human being's word, so that a plan says it beforehand. */
@Injectable()
export class ConflictsRepository {
  /** Marks the rows of a compared import whose person can't come through; they are applied all the same. */
  async predictConflicts(tx: PoolClient, importId: string): Promise<void> {
    await this.takenEmails(tx, importId);
    await this.clientsOfStuckProviders(tx, importId);
  }

  /**
   * An email is its first person's: who has it already, else the first row's (`ApplyRepository.claimEmails`). It does
   * not count with whom it is deleted by the same plan.
   */
  private async takenEmails(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `WITH leaving AS MATERIALIZED (
         SELECT person_id FROM import_rows WHERE import_id = $1 AND planned = 'delete' AND outcome = 'pending'),
       held AS (
         SELECT c.fingerprint, h.id FROM email_claims c JOIN people h ON h.id = c.person_id
         WHERE h.wanted AND NOT EXISTS (SELECT 1 FROM leaving l WHERE l.person_id = h.id)),
       asking AS (
         SELECT r.row_no, row_number() OVER (PARTITION BY r.email_fingerprint ORDER BY r.row_no) AS turn,
           held.id IS NOT NULL AS taken
         FROM import_rows r
         LEFT JOIN held ON held.fingerprint = r.email_fingerprint AND held.id IS DISTINCT FROM r.person_id
         WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.planned = 'create-or-link' AND r.email_fingerprint IS NOT NULL)
       UPDATE import_rows r SET planned = 'needs-review', code = 'email-taken', calls_min = 0, calls_max = 0 FROM asking a
       WHERE r.import_id = $1 AND r.row_no = a.row_no AND (a.taken OR a.turn > 1)`,
      [importId],
    );
  }

  /** A client can't follow a provider who does not get there. */
  private async clientsOfStuckProviders(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ externalId: string }>(
      `SELECT external_id AS "externalId" FROM import_rows
       WHERE import_id = $1 AND outcome = 'pending' AND kind = 'provider' AND planned = 'needs-review'
       UNION (SELECT external_id FROM people WHERE kind = 'provider' AND wanted AND state IN ('failed', 'needs-review')
         EXCEPT SELECT external_id FROM import_rows
           WHERE import_id = $1 AND kind = 'provider' AND planned IN ('create-or-link', 'attribute-change', 'unchanged'))`,
      [importId],
    );
    if (rows.length === 0) return;
    await tx.query(
      `UPDATE import_rows r SET planned = 'needs-review', calls_min = 0, calls_max = 0
       WHERE r.import_id = $1 AND r.kind = 'client' AND r.outcome = 'pending'
         AND r.planned IN ('create-or-link', 'provider-change') AND ${namesOneOf('$2')}`,
      [importId, rows.map(({ externalId }) => externalId)],
    );
  }
}
