import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService } from '../../database/prisma.service.js';
import { LEGAL_HOLD } from '../../people/rules/person-codes.js';
import { PeopleRepository } from '../../people/store/people.repository.js';
import { rejection } from '../parse/row/rejection.js';
import { forget, isFilled } from '../plan/row-sql.js';

const isFailed = (person: string) => `${person}.state = 'failed'`;

/** A client's provider failed, needs review or will be deleted, so that the client does not follow automatically. */
const isHopeless = (client: string) => `EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE cp.client_id = ${client}.id AND (${isFailed('q')} OR q.state = 'needs-review' OR NOT q.wanted))`;

/** Clients whose list on the platform contains a provider that will be deleted. */
const LISTING = 'SELECT 1 FROM people c WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.wanted';

/** The person who has this person's email is being deleted, or will be by import $1. */
const LEAVING = `EXISTS (SELECT 1 FROM email_claims e JOIN people h ON h.id = e.person_id
  WHERE e.fingerprint = p.email_fingerprint AND (NOT h.wanted AND h.state = 'deleting' AND h.error_code IS DISTINCT FROM '${LEGAL_HOLD}'
    OR h.id IN (SELECT person_id FROM import_rows WHERE import_id = $1 AND phase > 2)))`;

/** Outcomes after which the content of a row is no longer needed. */
const DONE = `('created', 'linked', 'updated', 'deleted', 'skipped')`;

/** SQL of the phase in which a row is applied. */
const PHASE = `CASE WHEN r.planned = 'delete' THEN CASE r.kind WHEN 'client' THEN 3 ELSE 4 END WHEN r.kind = 'provider' THEN 1 ELSE 2 END`;

/** SQL assignments of a row that is retried. */
const AGAIN = `outcome = 'pending', code = NULL, hint = NULL, settled_at = NULL`;

/** The outcomes of rows. A stored one changes only by a retry. */
@Injectable()
export class OutcomesRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
  ) {}

  /**
   * Gives applied rows the outcome of their people, unless someone else has stated the person since.
   *
   * @returns true if rows are still pending, applied or not
   */
  async resolve(tx: PoolClient, importId: string): Promise<boolean> {
    const { code, hint } = rejection('changed-since-read');
    await tx.query(
      `WITH resolved AS (
         SELECT r.row_no, p.error_code,
           CASE
             WHEN p.id IS NULL OR p.stated_at <> i.opened_at THEN 'skipped' -- without a person: it was merged
             WHEN p.state = 'deleted' THEN 'deleted'
             WHEN ${isFailed('p')} THEN 'failed'
             WHEN p.state = 'needs-review' AND NOT (p.error_code = 'email-taken' AND ${LEAVING}) THEN 'needsReview'
             WHEN p.state = 'synced' THEN
               CASE WHEN r.planned = 'provider-change' THEN 'updated' WHEN p.origin = 'created' THEN 'created' ELSE 'linked' END
             WHEN p.state = 'waiting' AND ${isHopeless('p')} THEN 'needsReview'
             WHEN p.state = 'deleting' AND p.error_code = '${LEGAL_HOLD}' THEN 'needsReview'
             WHEN p.state = 'deleting' AND p.error_code = 'clients-still-listed' AND p.due_at IS NULL
               AND EXISTS (${LISTING} AND c.state = 'waiting')
               AND NOT EXISTS (${LISTING} AND (c.state = 'pending' OR c.state = 'waiting' AND NOT ${isHopeless('c')}))
               THEN 'needsReview'
           END AS outcome
         FROM imports i JOIN import_rows r ON r.import_id = i.id LEFT JOIN people p ON p.id = r.person_id
         WHERE i.id = $1 AND r.outcome = 'pending' AND r.applied_at IS NOT NULL)
       UPDATE import_rows r SET outcome = resolved.outcome::row_outcome, settled_at = clock_timestamp(),
         ${forget(`resolved.outcome IN ${DONE}`)}, replaced = CASE WHEN resolved.outcome NOT IN ${DONE} THEN r.replaced END,
         code = CASE WHEN resolved.outcome = 'skipped' THEN $2 WHEN resolved.outcome IN ('failed', 'needsReview') THEN resolved.error_code END,
         hint = CASE WHEN resolved.outcome = 'skipped' THEN $3 END
       FROM resolved WHERE r.import_id = $1 AND r.row_no = resolved.row_no AND resolved.outcome IS NOT NULL`,
      [importId, code, hint],
    );
    const { rows } = await tx.query<{ isPending: boolean }>(
      `SELECT EXISTS (SELECT FROM import_rows WHERE import_id = $1 AND outcome = 'pending') AS "isPending"`,
      [importId],
    );
    return rows[0]?.isPending === true;
  }

  /** Erases the data of a finished import's unchanged rows. It was kept in case another import changed their people. */
  async forgetUnchanged(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET ${forget()} WHERE r.import_id = $1 AND r.outcome = 'unchanged' AND ${isFilled('r.profile')}`,
      [importId],
    );
  }

  /** Skips some of the rows that were not applied. @returns true if there may be more */
  async skipUnapplied(tx: PoolClient, importId: string, atOnce: number): Promise<boolean> {
    const { code, hint } = rejection('cancelled');
    const { rowCount } = await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', phase = NULL, ${forget()}, code = $2, hint = $3
       WHERE r.import_id = $1 AND r.row_no = ANY (ARRAY(
         SELECT row_no FROM import_rows WHERE import_id = $1 AND outcome = 'pending' AND applied_at IS NULL LIMIT $4))`,
      [importId, code, hint, atOnce],
    );
    return rowCount === atOnce;
  }

  /** Applies rows again that failed or need review before they were applied. @returns how many */
  async retryUnapplied(tx: PoolClient, importId: string): Promise<number> {
    const { rowCount } = await tx.query(
      `UPDATE import_rows r SET ${AGAIN}, phase = ${PHASE}
       WHERE r.import_id = $1 AND r.outcome IN ('failed', 'needsReview') AND r.applied_at IS NULL
         AND (r.planned = 'delete' OR ${isFilled('r.profile')})`,
      [importId],
    );
    return rowCount ?? 0;
  }

  /** The numbers of the applied rows that failed or need review. */
  async unsuccessful(importId: string): Promise<number[]> {
    const { rows } = await this.prisma.pool.query<{ rowNo: number }>(
      `SELECT row_no AS "rowNo" FROM import_rows
       WHERE import_id = $1 AND outcome IN ('failed', 'needsReview') AND applied_at IS NOT NULL ORDER BY row_no`,
      [importId],
    );
    return rows.map(({ rowNo }) => rowNo);
  }

  /** Retries the people of some of these rows, unless someone else has stated them since. @returns how many */
  async retry(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<number> {
    const { rows: people } = await tx.query<{ id: string }>(
      `UPDATE import_rows r SET ${AGAIN} FROM people p, imports i
       WHERE i.id = $1 AND r.import_id = i.id AND r.row_no = ANY ($2::int[])
         AND r.outcome IN ('failed', 'needsReview') AND r.applied_at IS NOT NULL
         AND p.id = r.person_id AND p.stated_at = i.opened_at
       RETURNING p.id`,
      [importId, rowNos],
    );
    const ids = people.map(({ id }) => id);
    if (ids.length > 0) await this.people.retryAll(await this.prisma.in(tx), ids);
    return ids.length;
  }
}
