import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { forgetting } from '../model/batch-rows.js';

/** A client's provider failed, is in review or is to be deleted: the client does not follow by itself. */
const isHopeless = (client: string) => `EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE cp.client_id = ${client}.id AND (q.state IN ('failed', 'needs-review') OR NOT q.wanted))`;

/** Clients whose list on the platform holds a provider who is to be deleted. */
const LISTING = 'SELECT 1 FROM people c WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.wanted';

/** Who has this person's email is being deleted. */
const LEAVING = `EXISTS (SELECT 1 FROM email_claims e JOIN people h ON h.id = e.person_id
  WHERE e.fingerprint = p.email_fingerprint AND NOT h.wanted AND h.state = 'deleting')`;

/** Gives rows the outcome that their person came to. */
@Injectable()
export class OutcomesRepository {
  /** @returns how many rows of the import are still pending */
  async resolveOutcomes(tx: PoolClient, importId: string): Promise<number> {
    await tx.query(
      `WITH come AS (
         SELECT r.row_no, p.error_code, p.state,
           CASE
             WHEN p.wanted = (r.planned = 'delete') THEN 'skipped'
             WHEN p.state = 'deleted' THEN 'deleted'
             WHEN p.state = 'failed' THEN 'failed'
             WHEN p.state = 'needs-review' AND NOT (p.error_code = 'email-taken' AND ${LEAVING}) THEN 'needsReview'
             WHEN p.state = 'synced' THEN
               CASE WHEN r.planned = 'provider-change' THEN 'updated' WHEN p.origin = 'created' THEN 'created' ELSE 'linked' END
             WHEN p.state = 'waiting' AND ${isHopeless('p')} THEN 'needsReview'
             WHEN p.state = 'deleting' AND p.error_code = 'clients-still-listed' AND p.due_at IS NULL
               AND EXISTS (${LISTING} AND c.state = 'waiting')
               AND NOT EXISTS (${LISTING} AND (c.state = 'pending' OR c.state = 'waiting' AND NOT ${isHopeless('c')}))
               THEN 'needsReview'
           END AS outcome
         FROM import_rows r JOIN people p ON p.id = r.person_id
         WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.applied)
       UPDATE import_rows r SET outcome = come.outcome::row_outcome,
         ${forgetting(`come.outcome IN ('created', 'linked', 'updated', 'deleted')`)},
         code = CASE WHEN come.outcome = 'skipped' THEN 'changed-since-plan'
           WHEN come.outcome IN ('failed', 'needsReview') THEN come.error_code END
       FROM come WHERE r.import_id = $1 AND r.row_no = come.row_no AND come.outcome IS NOT NULL`,
      [importId],
    );
    const { rows } = await tx.query<{ pending: number }>(
      `SELECT count(*)::int AS pending FROM import_rows WHERE import_id = $1 AND outcome = 'pending'`,
      [importId],
    );
    return rows[0]?.pending ?? 0;
  }
}
