import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Env } from '../../config/env.js';
import { PROVIDERS_MAX } from '../../people/model/person-field-rules.js';
import { FormerIdsRepository } from '../../people/store/former-ids.repository.js';
import { type Guard, guardsOf, type PlanCounts, parseThreshold } from '../model/import-guards.js';
import { type ImportRecord, ImportsRepository } from '../model/imports.repository.js';
import { rejection } from '../parse/row/rejection.js';
import { StagingRepository } from '../upload/staging.repository.js';
import { ProviderTokensRepository } from './provider-tokens.repository.js';
import { added, ReferencesRepository } from './references.repository.js';
import { SnapshotDeletesRepository } from './snapshot-deletes.repository.js';

/**
 * Whether a row `r` names one of a set of providers, a parameter such as `$2`: as a part of the statement the planner
 * would join it anew for each row, and take minutes for 100,000 clients.
 */
export const namesOneOf = (parameter: string): string =>
  `EXISTS (SELECT 1 FROM unnest(r.providers) AS one(provider) WHERE one.provider = ANY (${parameter}::text[]))`;

/** The former id `f` with which a row `r` names its person. As a scalar subquery, because the planner cannot reorder it. */
const ofFormerId = (value: string): string =>
  `(SELECT ${value} FROM former_ids f WHERE f.kind = r.kind AND f.external_id = r.external_id)`;

/** Whether that person was merged into another one. */
const IS_MERGED = ofFormerId('(SELECT p.merged_into IS NOT NULL FROM people p WHERE p.id = f.person_id)');

/**
 * Rejects rows that name a person by a former id. They count as naming its successor: see `SnapshotDeletesRepository`.
 *
 * @param which condition of rows `r`, with its values
 */
export async function rejectFormerIds(tx: PoolClient, which: string, values: unknown[]): Promise<void> {
  const next = values.length + 1;
  await tx.query(
    `UPDATE import_rows r SET outcome = 'rejected', calls_min = 0, calls_max = 0, field = 'externalId', profile = NULL,
       planned = CASE WHEN r.planned = 'unchanged' THEN NULL ELSE r.planned END,
       code = CASE WHEN ${IS_MERGED} THEN 'merged' ELSE 'renamed' END,
       hint = CASE WHEN ${IS_MERGED} THEN $${next + 1}::text ELSE $${next}::text END
     WHERE ${which} AND r.planned IS DISTINCT FROM 'delete' AND ${ofFormerId('true')}`,
    [...values, rejection('renamed').hint, rejection('merged').hint],
  );
}

/** The plan, and the rules that need all rows of an import: set-based SQL. */
@Injectable()
export class PlanRepository {
  constructor(
    private readonly imports: ImportsRepository,
    private readonly tokens: ProviderTokensRepository,
    private readonly references: ReferencesRepository,
    private readonly deletes: SnapshotDeletesRepository,
    private readonly staging: StagingRepository,
    private readonly formerIds: FormerIdsRepository,
    private readonly env: Env,
  ) {}

  /** Plans the pending rows of an import that was read to its end; no person is changed yet. */
  async plan(tx: PoolClient, record: ImportRecord): Promise<void> {
    if (record.state === 'staging') {
      await this.staging.recheckUnchanged(tx, record.id);
      await this.tokens.resolve(tx, record.id);
    }
    if (record.kind === 'fhir') await this.references.resolve(tx, record);
    await rejectFormerIds(tx, `r.import_id = $1 AND r.outcome IN ('pending', 'unchanged')`, [record.id]);
    await this.rejectDuplicates(tx, record.id);
    if (record.mode === 'upsert') await this.keepLists(tx, record.id);
    if (record.kind === 'fhir') {
      if (!record.defaultProvider) await this.references.rejectUnresolved(tx, record);
      await this.references.discardLinks(tx, record.id);
    }
    await this.giveDefaultProvider(tx, record);
    await this.rejectUnknownProviders(tx, record.id);
    if (record.mode === 'snapshot') await this.deletes.plan(tx, record.id);
    const compared = await this.compare(tx, record.id);
    if (record.state === 'staging' && record.attempts > 1) await this.skipOvertaken(tx, record.id);
    // Without statistics the rows written just now, taken for few, would be looked through for each row.
    if (compared > 0) await this.imports.analyse(tx);
    if (record.mode === 'snapshot') await this.deletes.skipReferenced(tx, record.id);
    await this.markTakenEmails(tx, record.id);
    await this.markClientsOfStuckProviders(tx, record.id);
    await this.staging.discardRaw(tx, record.id, { mayBeRetried: true });
  }

  /** Discards what only the plan of an import that can't be planned would need; its rejected rows can be shown still. */
  async discard(tx: PoolClient, importId: string): Promise<void> {
    await this.references.discard(tx, importId);
    await this.staging.discardRaw(tx, importId, { mayBeRetried: false });
  }

  /** Counts the deletes and provider removals of planned rows, by kind. @param rowNos null: all rows of the import */
  async evaluateThresholds(
    tx: PoolClient,
    importId: string,
    rowNos: readonly number[] | null = null,
  ): Promise<Guard[]> {
    const { rows } = await tx.query<PlanCounts & { nameless: number }>(
      `WITH present AS MATERIALIZED (SELECT kind, count(*)::int AS people FROM people WHERE wanted GROUP BY kind)
       SELECT count(*) FILTER (WHERE r.planned = 'delete')::int AS deletes,
         count(*) FILTER (WHERE r.planned IN ('provider-change', 'needs-review') AND EXISTS (
           SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = r.person_id AND NOT q.external_id = ANY(r.providers)))::int AS "providerRemovals",
         coalesce((SELECT people FROM present WHERE kind = k.kind), 0) AS people,
         (SELECT count(*)::int FROM import_rows n
           WHERE n.import_id = $1 AND n.outcome = 'rejected' AND n.external_id IS NULL) AS nameless
       FROM unnest(ARRAY['provider', 'client']::person_kind[]) AS k(kind)
       LEFT JOIN import_rows r ON r.import_id = $1 AND r.kind = k.kind AND r.outcome = 'pending'
         AND ($2::int[] IS NULL OR r.row_no = ANY ($2))
       GROUP BY k.kind ORDER BY k.kind DESC`,
      [importId, rowNos],
    );
    const { IMPORT_MAX_DELETES, IMPORT_MAX_PROVIDER_REMOVALS } = this.env;
    return guardsOf(rows, rows[0]?.nameless ?? 0, {
      deletes: parseThreshold(IMPORT_MAX_DELETES),
      providerRemovals: parseThreshold(IMPORT_MAX_PROVIDER_REMOVALS),
    });
  }

  /** Other imports passed this one while it could not be planned: changes since it was read stand. */
  private async skipOvertaken(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'changed-since-plan', calls_min = 0, calls_max = 0,
         hint = 'This person was changed after the import was read, and before it could be planned: retry to plan it anew.'
       FROM people p, imports i
       WHERE i.id = $1 AND r.import_id = $1 AND r.outcome = 'pending' AND p.id = r.person_id AND p.wanted_at > i.staged_at`,
      [importId],
    );
  }

  private async rejectDuplicates(tx: PoolClient, importId: string): Promise<void> {
    const { code, hint } = rejection('duplicate-id');
    await tx.query(
      `WITH firsts AS MATERIALIZED (
         SELECT kind, external_id, min(row_no) AS row_no FROM import_rows
         WHERE import_id = $1 AND outcome IN ('pending', 'unchanged') GROUP BY kind, external_id HAVING count(*) > 1)
       UPDATE import_rows r SET outcome = 'rejected', planned = NULL, code = $2, field = 'externalId', hint = $3 FROM firsts f
       WHERE r.import_id = $1 AND r.kind = f.kind AND r.external_id = f.external_id AND r.row_no > f.row_no
         AND r.outcome IN ('pending', 'unchanged')`,
      [importId, code, hint],
    );
  }

  /** Rejects pending clients `r` for their providers. @param values of the condition, from $4 on */
  private async rejectClients(
    tx: PoolClient,
    importId: string,
    { code, hint }: ReturnType<typeof rejection>,
    condition: string,
    ...values: unknown[]
  ): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET outcome = 'rejected', code = $2, field = 'providers', hint = $3
       WHERE r.import_id = $1 AND r.kind = 'client' AND r.outcome = 'pending' AND ${condition}`,
      [importId, code, hint, ...values],
    );
  }

  /** An upsert leaves the providers of a client alone of whom the file does not speak; what it adds is on the row. */
  private async keepLists(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `WITH unspoken AS MATERIALIZED (
         SELECT row_no, external_id, coalesce(added_providers, '{}') AS added FROM import_rows
         WHERE import_id = $1 AND kind = 'client' AND outcome = 'pending' AND providers IS NULL),
       lists AS (
         SELECT u.row_no, array_agg(q.external_id ORDER BY cp.position) AS providers FROM unspoken u
         JOIN people c ON c.kind = 'client' AND c.external_id = u.external_id AND c.wanted
         JOIN client_providers cp ON cp.client_id = c.id JOIN people q ON q.id = cp.provider_id AND q.wanted
         GROUP BY u.row_no)
       UPDATE import_rows r SET providers = (${added('lists.providers', 'u.added')})[1:$2], added_providers = u.added
       FROM unspoken u LEFT JOIN lists USING (row_no) WHERE r.import_id = $1 AND r.row_no = u.row_no`,
      [importId, PROVIDERS_MAX],
    );
  }

  private async giveDefaultProvider(tx: PoolClient, { id, defaultProvider }: ImportRecord): Promise<void> {
    const namesNobody = `coalesce(providers, '{}') = '{}'`;
    if (!defaultProvider) return this.rejectClients(tx, id, rejection('no-provider'), namesNobody);
    await tx.query(
      `UPDATE import_rows SET providers = ARRAY[$2]
       WHERE import_id = $1 AND kind = 'client' AND outcome = 'pending' AND ${namesNobody}`,
      [id, defaultProvider],
    );
  }

  private async rejectUnknownProviders(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ externalId: string }>(
      `SELECT external_id AS "externalId" FROM (
         SELECT unnest(providers) AS external_id FROM import_rows
           WHERE import_id = $1 AND kind = 'client' AND outcome = 'pending'
         EXCEPT SELECT external_id FROM import_rows WHERE import_id = $1 AND kind = 'provider' AND outcome = 'pending') AS named
       WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.kind = 'provider' AND p.external_id = named.external_id AND p.wanted)`,
      [importId],
    );
    if (rows.length === 0) return;
    const unknown = rows.map(({ externalId }) => externalId);
    const renamed = [...(await this.formerIds.find('provider', unknown, tx)).keys()];
    await this.rejectClients(tx, importId, rejection('renamed'), namesOneOf('$4'), renamed);
    await this.rejectClients(tx, importId, rejection('unknown-provider'), namesOneOf('$4'), unknown);
  }

  /**
   * Compares each row with its person: what is planned, the person's version, and the calls it takes. What needs no
   * call has its outcome at once.
   *
   * @returns how many rows that were
   */
  private async compare(tx: PoolClient, importId: string): Promise<number> {
    const { rowCount } = await tx.query(
      `WITH compared AS (
         SELECT r.row_no, p.id AS person_id, p.wanted_at, p.error_code, p.platform_user_id IS NOT NULL AS mapped,
           r.email_fingerprint IS NOT NULL AS has_email, 1 + (cardinality(r.providers) > 1)::int AS without_check,
           CASE
             WHEN r.outcome = 'rejected' THEN 'rejected'
             WHEN r.planned = 'delete' THEN 'delete'
             WHEN p.id IS NULL OR NOT p.wanted THEN 'create-or-link'
             WHEN p.profile_hash = r.profile_hash AND (r.kind = 'provider' OR r.providers = lists.providers) THEN
               CASE WHEN p.state = 'synced' THEN 'unchanged'
                 WHEN p.state IN ('needs-review', 'failed') THEN 'needs-review'
                 WHEN p.platform_user_id IS NULL THEN 'create-or-link' ELSE 'provider-change' END
             WHEN p.platform_user_id IS NULL THEN 'create-or-link'
             WHEN r.kind = 'client' AND (r.providers IS DISTINCT FROM lists.providers OR p.state <> 'synced') THEN 'provider-change'
             ELSE 'attribute-change' END AS planned
         FROM import_rows r
         LEFT JOIN people p ON p.kind = r.kind AND p.external_id = r.external_id
         LEFT JOIN LATERAL (
           SELECT array_agg(q.external_id ORDER BY cp.position) AS providers
           FROM client_providers cp JOIN people q ON q.id = cp.provider_id WHERE cp.client_id = p.id) AS lists ON true
         WHERE r.import_id = $1 AND r.outcome = 'pending' AND (r.planned IS NULL OR r.planned = 'delete' AND r.person_id IS NULL)
           OR r.import_id = $1 AND r.outcome = 'rejected' AND r.planned IS NULL)
       UPDATE import_rows r SET planned = c.planned, person_id = c.person_id, person_wanted_at = c.wanted_at,
         calls_min = CASE c.planned
           WHEN 'create-or-link' THEN CASE WHEN r.kind = 'provider' THEN 1 WHEN c.has_email THEN 2 ELSE c.without_check END
           WHEN 'provider-change' THEN 1 WHEN 'delete' THEN c.mapped::int ELSE 0 END,
         calls_max = CASE c.planned
           WHEN 'create-or-link' THEN CASE WHEN r.kind = 'provider' THEN 2 ELSE c.has_email::int + c.without_check END
           WHEN 'provider-change' THEN 1 WHEN 'delete' THEN 1 ELSE 0 END,
         outcome = CASE c.planned WHEN 'unchanged' THEN 'unchanged' WHEN 'needs-review' THEN 'needsReview' ELSE r.outcome::text END::row_outcome,
         code = CASE WHEN c.planned = 'needs-review' THEN c.error_code ELSE r.code END,
         profile = CASE WHEN c.planned IN ('unchanged', 'rejected') THEN NULL ELSE r.profile END
       FROM compared c WHERE r.import_id = $1 AND r.row_no = c.row_no`,
      [importId],
    );
    return rowCount ?? 0;
  }

  /** An email is its first person's, else the first row's (`claimEmails`), unless the same plan deletes that person. */
  private async markTakenEmails(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `WITH leaving AS MATERIALIZED (
         SELECT person_id FROM import_rows WHERE import_id = $1 AND planned = 'delete' AND outcome = 'pending'),
       held AS (
         SELECT c.fingerprint, h.id FROM email_claims c JOIN people h ON h.id = c.person_id
         WHERE h.wanted AND NOT EXISTS (SELECT 1 FROM leaving l WHERE l.person_id = h.id)),
       asking AS (
         SELECT r.row_no, row_number() OVER (PARTITION BY r.email_fingerprint ORDER BY r.row_no) AS place,
           held.id IS NOT NULL AS taken
         FROM import_rows r
         LEFT JOIN held ON held.fingerprint = r.email_fingerprint AND held.id IS DISTINCT FROM r.person_id
         WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.planned = 'create-or-link' AND r.email_fingerprint IS NOT NULL)
       UPDATE import_rows r SET planned = 'needs-review', code = 'email-taken', calls_min = 0, calls_max = 0 FROM asking a
       WHERE r.import_id = $1 AND r.row_no = a.row_no AND (a.taken OR a.place > 1)`,
      [importId],
    );
  }

  /** A client can't follow a provider who does not get there. */
  private async markClientsOfStuckProviders(tx: PoolClient, importId: string): Promise<void> {
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
