import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { ImportRecord } from '../model/imports.repository.js';
import { IS_ALONE } from '../model/open-imports.js';
import { rejection } from '../parse/row/rejection.js';
import { settleMergedCharts } from './merged-charts.js';
import { RepeatedRows } from './repeated-rows.js';
import { forget, isFilled, listAfter, namesOneOf, providersOf, rejectFormerIds } from './row-sql.js';
import { SnapshotDeletes } from './snapshot-deletes.repository.js';

/** SQL condition: the references of a FHIR client lead to no provider, which the plan cannot find out again. */
const IS_UNRESOLVED = `code = 'unresolved-provider'`;

/** Minimum number of rows for which the planner needs statistics. */
const MANY_ROWS = 1_000;

/** Makes the plan of an import with set-based SQL. Changes no person. */
@Injectable()
export class PlanRepository {
  constructor(
    private readonly repeated: RepeatedRows,
    private readonly deletes: SnapshotDeletes,
  ) {}

  /** @param rows of its files */
  async plan(tx: PoolClient, record: ImportRecord, rows: number): Promise<void> {
    const { id } = record;
    if (record.guards) await this.reset(tx, id);
    await this.analyse(tx, rows);
    await this.repeated.useOneSpelling(tx, id);
    await rejectFormerIds(tx, `r.import_id = $1 AND r.outcome IN ('pending', 'unchanged')`, [id]);
    await this.skipOutdated(tx, id);
    await this.repeated.unite(tx, id);
    if (record.kind === 'fhir') await settleMergedCharts(tx, id);
    await this.completeProviders(tx, record);
    await this.checkLinks(tx, id);
    const compared = await this.compare(tx, id);
    const added = record.mode === 'snapshot' ? await this.deletes.add(tx, record) : 0;
    // Without statistics, the planner would take the rows written just now for few.
    await this.analyse(tx, compared + added);
    await this.deletes.keepReferencedProviders(tx, id);
    await this.markTakenEmails(tx, id);
    await this.markClientsOfStuckProviders(tx, id);
  }

  /**
   * Refreshes the statistics of columns that the plan compares. A sample of 3,000 rows is enough.
   *
   * @param rows that were written; for a few, any plan is fast enough
   */
  private async analyse(tx: PoolClient, rows: number): Promise<void> {
    if (rows < MANY_ROWS) return;
    await tx.query(`SET LOCAL default_statistics_target = 10;
      ANALYZE import_rows (import_id, row_no, kind, external_id, says, outcome, planned, phase, person_id, email_fingerprint),
        people (id, kind, external_id, state, wanted, error_code), client_providers`);
  }

  /** Forgets an earlier plan, which a correction replaces. Rows that were rejected or unchanged when read stay so. */
  private async reset(tx: PoolClient, importId: string): Promise<void> {
    await tx.query('DELETE FROM import_rows WHERE import_id = $1 AND file = 0', [importId]);
    await tx.query(
      `UPDATE import_rows SET outcome = 'pending', planned = NULL, phase = NULL, field = NULL,
         code = CASE WHEN ${IS_UNRESOLVED} THEN code END, hint = CASE WHEN ${IS_UNRESOLVED} THEN hint END,
         calls_min = 0, calls_max = 0
       WHERE import_id = $1 AND planned IS NOT NULL AND (says = 'person' AND profile IS NOT NULL OR says IN ('gone', 'deleted'))`,
      [importId],
    );
  }

  /** A statement of the EHR after the upload began wins over the row. `LaterStatements` looks at unchanged rows. */
  private async skipOutdated(tx: PoolClient, importId: string): Promise<void> {
    const { code, hint } = rejection('changed-since-read');
    const openedAt = '(SELECT opened_at FROM imports WHERE id = $1)';
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = $2, hint = $3, planned = NULL, ${forget()}, cells = NULL
       WHERE r.import_id = $1 AND (r.outcome = 'pending' OR r.code = 'erased')
         AND (SELECT p.stated_at > ${openedAt} FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`,
      [importId, code, hint],
    );
    // A row that was rejected keeps no name of a person whom the EHR has deleted since.
    await tx.query(
      `UPDATE import_rows r SET ${forget()}, cells = NULL
       WHERE r.import_id = $1 AND r.outcome = 'rejected' AND r.cells IS NOT NULL
         AND EXISTS (SELECT FROM people p WHERE p.kind = coalesce(r.kind, p.kind) AND p.external_id = r.external_id
           AND NOT p.wanted AND p.stated_at > ${openedAt})`,
      [importId],
    );
  }

  /** Gives the default provider to clients that would have none, or rejects them. */
  private async completeProviders(tx: PoolClient, { id, defaultProvider }: ImportRecord): Promise<void> {
    const open = `r.import_id = $1 AND r.kind = 'client' AND r.says = 'person' AND r.outcome = 'pending'`;
    const hasNone = `coalesce(cardinality(r.providers), 0) = 0 AND NOT ((r.providers IS NULL OR r.adds_providers)
      AND (SELECT p.wanted AND ${providersOf('p.id')} IS NOT NULL FROM people p WHERE p.kind = 'client' AND p.external_id = r.external_id) IS TRUE)`;
    if (defaultProvider) {
      await tx.query(
        `UPDATE import_rows r SET providers = ARRAY[$2], adds_providers = false WHERE ${open} AND ${hasNone}`,
        [id, defaultProvider],
      );
    } else {
      const { code, field, hint } = rejection('no-provider', { field: 'providers' });
      await tx.query(
        `UPDATE import_rows r SET outcome = 'rejected', planned = 'rejected', field = $2,
           code = coalesce(r.code, $3), hint = coalesce(r.hint, $4)
         WHERE ${open} AND ${hasNone}`,
        [id, field, code, hint],
      );
    }
    await tx.query(`UPDATE import_rows r SET code = NULL, hint = NULL WHERE ${open} AND r.code IS NOT NULL`, [id]);
  }

  /** Rejects links to a platform user that belongs to someone else, or of someone who has another one. */
  private async checkLinks(tx: PoolClient, importId: string): Promise<void> {
    const [otherwise, taken] = [rejection('linked-otherwise'), rejection('platform-user-taken')];
    await tx.query(
      `WITH links AS MATERIALIZED (
         SELECT r.row_no, r.kind, r.external_id, r.platform_user_id AS user_id,
           row_number() OVER (PARTITION BY r.platform_user_id ORDER BY r.row_no) AS place
         FROM import_rows r WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.platform_user_id IS NOT NULL),
       faults AS (
         SELECT l.row_no, CASE
             WHEN (SELECT p.platform_user_id <> l.user_id FROM people p WHERE p.kind = l.kind AND p.external_id = l.external_id) THEN $2
             WHEN l.place > 1 OR (SELECT p.kind <> l.kind OR p.external_id <> l.external_id FROM people p
               WHERE p.platform_user_id = l.user_id) THEN $4 END AS code
         FROM links l)
       UPDATE import_rows r SET outcome = 'rejected', planned = 'rejected', code = f.code, field = 'platformUserId',
         hint = CASE f.code WHEN $2 THEN $3 ELSE $5 END
       FROM faults f WHERE r.import_id = $1 AND r.row_no = f.row_no AND f.code IS NOT NULL`,
      [importId, otherwise.code, otherwise.hint, taken.code, taken.hint],
    );
  }

  /**
   * Compares each row with its person: what is planned, in which phase it is applied, and the calls it needs. Rows that need nothing get
   * their outcome immediately.
   *
   * @returns how many rows were not known to be unchanged
   */
  private async compare(tx: PoolClient, importId: string): Promise<number> {
    const gone = rejection('inactive');
    const deleted = rejection('already-deleted');
    const { rowCount } = await tx.query(
      `WITH compared AS (
         SELECT r.row_no, p.id AS person_id, p.wanted_version, p.error_code, p.wanted IS TRUE AS is_wanted,
           p.platform_user_id IS NOT NULL AS is_mapped, r.email_fingerprint IS NOT NULL AS has_email,
           r.platform_user_id IS NOT NULL AND p.platform_user_id IS NULL AS is_link,
           1 + (cardinality(lists.after) > 1)::int AS without_check,
           CASE
             WHEN r.says <> 'person' THEN
               CASE WHEN r.says = 'deleted' AND p.wanted THEN 'delete' WHEN p.wanted THEN 'unchanged' END
             WHEN p.id IS NULL OR NOT p.wanted OR r.platform_user_id IS NOT NULL AND p.platform_user_id IS NULL THEN 'create-or-link'
             WHEN p.profile_hash = r.profile_hash AND (r.kind = 'provider' OR lists.after = lists.before) THEN
               CASE WHEN p.state = 'synced' THEN 'unchanged'
                 WHEN p.state IN ('needs-review', 'failed') THEN 'needs-review'
                 WHEN p.platform_user_id IS NULL THEN 'create-or-link' ELSE 'provider-change' END
             WHEN p.platform_user_id IS NULL THEN 'create-or-link'
             WHEN r.kind = 'client' AND (lists.after IS DISTINCT FROM lists.before OR p.state <> 'synced') THEN 'provider-change'
             ELSE 'attribute-change' END AS planned,
           p.profile_hash = r.profile_hash AND (r.kind = 'provider' OR lists.after = lists.before) AS is_equal
         FROM import_rows r
         LEFT JOIN people p ON p.kind = r.kind AND p.external_id = r.external_id
         LEFT JOIN LATERAL (SELECT ${providersOf('p.id')} AS before OFFSET 0) AS had ON true
         LEFT JOIN LATERAL (SELECT had.before, ${listAfter('had.before')} AS after OFFSET 0) AS lists ON true
         WHERE r.import_id = $1 AND r.outcome = 'pending')
       UPDATE import_rows r SET planned = c.planned, person_id = c.person_id, person_version = c.wanted_version,
         phase = CASE WHEN c.planned = 'unchanged' OR c.planned IS NULL OR c.planned = 'needs-review' AND c.is_equal THEN NULL
           WHEN c.planned = 'delete' THEN CASE r.kind WHEN 'client' THEN 3 ELSE 4 END
           WHEN r.kind = 'provider' THEN 1 ELSE 2 END,
         calls_min = CASE c.planned
           WHEN 'create-or-link' THEN CASE WHEN c.is_link THEN (r.kind = 'client')::int WHEN r.kind = 'provider' THEN 1
             WHEN c.has_email THEN 2 ELSE c.without_check END
           WHEN 'provider-change' THEN 1 WHEN 'delete' THEN c.is_mapped::int ELSE 0 END,
         calls_max = CASE c.planned
           WHEN 'create-or-link' THEN CASE WHEN c.is_link THEN (r.kind = 'client')::int WHEN r.kind = 'provider' THEN 2
             ELSE c.has_email::int + c.without_check END
           WHEN 'provider-change' THEN 1 WHEN 'delete' THEN 1 ELSE 0 END,
         outcome = CASE WHEN c.planned = 'unchanged' THEN 'unchanged' WHEN c.planned IS NULL THEN 'skipped'
           WHEN c.planned = 'needs-review' AND c.is_equal THEN 'needsReview' ELSE 'pending' END::row_outcome,
         code = CASE WHEN r.says = 'gone' THEN $2 WHEN c.planned IS NULL THEN $4 WHEN c.planned = 'needs-review' THEN c.error_code END,
         hint = CASE WHEN r.says = 'gone' THEN $3 WHEN c.planned IS NULL THEN $5 END,
         ${forget(`c.planned = 'unchanged' AND ${IS_ALONE} OR c.planned IS NULL`)}
       FROM compared c WHERE r.import_id = $1 AND r.row_no = c.row_no`,
      [importId, gone.code, gone.hint, deleted.code, deleted.hint],
    );
    return rowCount ?? 0;
  }

  /** An email belongs to the person that has it, otherwise to the first row, unless the same plan deletes that person. */
  private async markTakenEmails(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `WITH leaving AS MATERIALIZED (
         SELECT person_id FROM import_rows WHERE import_id = $1 AND planned = 'delete' AND outcome = 'pending'),
       asking AS (
         SELECT r.row_no, row_number() OVER (PARTITION BY r.email_fingerprint ORDER BY r.row_no) AS place,
           (SELECT h.wanted AND h.id IS DISTINCT FROM r.person_id AND NOT EXISTS (SELECT 1 FROM leaving l WHERE l.person_id = h.id)
             FROM email_claims c JOIN people h ON h.id = c.person_id WHERE c.fingerprint = r.email_fingerprint) IS TRUE AS taken
         FROM import_rows r
         WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.planned = 'create-or-link' AND ${isFilled('r.email_fingerprint')}
           AND r.platform_user_id IS NULL)
       UPDATE import_rows r SET planned = 'needs-review', code = 'email-taken', calls_min = 0, calls_max = 0 FROM asking a
       WHERE r.import_id = $1 AND r.row_no = a.row_no AND (a.taken OR a.place > 1)`,
      [importId],
    );
  }

  /** A client cannot follow a provider that cannot be mirrored. */
  private async markClientsOfStuckProviders(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ externalId: string }>(
      `SELECT external_id AS "externalId" FROM (
         SELECT external_id FROM import_rows WHERE import_id = $1 AND kind = 'provider' AND planned = 'needs-review'
         UNION (SELECT external_id FROM people WHERE kind = 'provider' AND wanted AND state IN ('failed', 'needs-review')
           EXCEPT SELECT external_id FROM import_rows
             WHERE import_id = $1 AND kind = 'provider' AND planned IN ('create-or-link', 'attribute-change', 'unchanged'))) AS stuck
       WHERE EXISTS (SELECT FROM import_rows WHERE import_id = $1 AND outcome = 'pending' AND kind = 'client')`,
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
