import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { ImportRow } from '../../generated/prisma/client.js';
import { BLIND_CREATE } from '../../people/model/next-step.js';
import type { PersonKind } from '../../people/model/person.js';
import { RESET_ASSIGNMENTS } from '../../people/store/person-row.js';
import { OF_ANY_ACCOUNT } from '../../platform/rate-limit/rate-limiter.repository.js';
import { ERASED, type PlannedOutcome, type RowOutcome } from '../model/import.js';
import type { Guard } from '../model/import-guards.js';
import type { ImportRecord } from '../model/imports.repository.js';
import { PlanRepository } from '../plan/plan.repository.js';
import { discarding } from './apply.repository.js';

/** A row as it is listed; of a rejected client its providers are also those that other resources named. */
export type ImportRowRecord = Pick<ImportRow, 'rowNo' | 'file' | 'line' | 'kind' | 'externalId' | 'planned'> &
  Pick<ImportRow, 'outcome' | 'code' | 'field' | 'hint' | 'providers'>;

/** The calls that people of one kind still take, and how many of those who were checked were found on the platform. */
export type RemainingCalls = Record<'min' | 'max' | 'linked' | 'absent', number>;

/** Rows by outcome, the calls made and those left. */
export interface ImportTotals {
  counts: Partial<Record<RowOutcome, number>>;
  /** Rows that a snapshot added for people to delete, by outcome. */
  deletes: Partial<Record<RowOutcome, number>>;
  planned: Record<string, number>;
  callsMade: number;
  remaining: RemainingCalls[];
}

/**
 * A rejection counts once it is final, or once it was repeated while the operation is not stopped for everyone: otherwise
 * the person continues automatically.
 */
const isFailed = (person: string) => `(${person}.state = 'failed' AND (${person}.fault IS NOT NULL
  OR ${person}.refusals > 1 AND NOT EXISTS (SELECT 1 FROM circuit_breakers b
    WHERE b.operation = ${person}.refused_operation AND b.state->>'block' IS NOT NULL)))`;

/** A client's provider failed, is in review or is to be deleted: the client does not follow by itself. */
const isHopeless = (client: string) => `EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE cp.client_id = ${client}.id AND (${isFailed('q')} OR q.state = 'needs-review' OR NOT q.wanted))`;

/** Clients whose list on the platform holds a provider who is to be deleted. */
const LISTING = 'SELECT 1 FROM people c WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.wanted';

/** The person who has this person's email is being deleted. */
const LEAVING = `EXISTS (SELECT 1 FROM email_claims e JOIN people h ON h.id = e.person_id
  WHERE e.fingerprint = p.email_fingerprint AND NOT h.wanted AND h.state = 'deleting')`;

/** The check has said whether the person is on the platform. */
const IS_CHECKED = `(p.checked_absent_at IS NOT NULL OR p.platform_user_id IS NOT NULL OR p.step IN ('createProvider', 'createClient', '${BLIND_CREATE}'))`;

/** The calls that a pending row still takes at least or, by the plan, at most. */
const calls = (planned: 'r.calls_min' | 'r.calls_max') => `CASE
  WHEN r.outcome <> 'pending' OR p.state IN ('synced', 'failed', 'needs-review', 'deleted') THEN 0
  WHEN p.step IN ('createProvider', 'setClientProviders', 'deleteUser') OR r.kind = 'client' AND p.platform_user_id IS NOT NULL THEN 1
  WHEN r.kind = 'client' AND ${IS_CHECKED} THEN 1 + (cardinality(r.providers) > 1)::int
  ELSE ${planned} END`;

/** What a pending row said was erased with its person. */
const IS_EMPTY = `r.profile IS NULL AND r.planned <> 'delete'`;

/** What becomes of an import's rows, and shows it. */
@Injectable()
export class OutcomesRepository {
  constructor(
    private readonly database: Database,
    private readonly plans: PlanRepository,
  ) {}

  /** Gives rows the outcome that their person came to. @returns how many rows of the import are still pending */
  async resolveOutcomes(tx: PoolClient, importId: string): Promise<number> {
    await tx.query(
      `WITH resolved AS (
         SELECT r.row_no, p.error_code, p.state,
           CASE
             WHEN p.wanted = (r.planned = 'delete') THEN 'skipped'
             WHEN p.state = 'deleted' THEN 'deleted'
             WHEN ${isFailed('p')} THEN 'failed'
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
       UPDATE import_rows r SET outcome = resolved.outcome::row_outcome,
         ${discarding(`resolved.outcome IN ('created', 'linked', 'updated', 'deleted')`)},
         code = CASE WHEN resolved.outcome = 'skipped' THEN CASE WHEN ${IS_EMPTY} THEN $2 ELSE 'changed-since-plan' END
           WHEN resolved.outcome IN ('failed', 'needsReview') THEN resolved.error_code END,
         hint = CASE WHEN resolved.outcome = 'skipped' AND ${IS_EMPTY} THEN $3 ELSE r.hint END
       FROM resolved WHERE r.import_id = $1 AND r.row_no = resolved.row_no AND resolved.outcome IS NOT NULL`,
      [importId, ERASED.code, ERASED.hint],
    );
    const { rows } = await tx.query<{ pending: number }>(
      `SELECT count(*)::int AS pending FROM import_rows WHERE import_id = $1 AND outcome = 'pending'`,
      [importId],
    );
    return rows[0]?.pending ?? 0;
  }

  /**
   * Takes up again what an import did not get done: plans skipped rows anew, to be applied, with the lists as they are now
   * where the files left or added to them, and releases the people of failed rows and of those in review.
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
    // A row of which neither the profile nor the snapshot before it is kept stays as it is.
    const { rows: reopened } = await tx.query<{ id: string }>(
      `UPDATE import_rows r SET outcome = 'pending', code = NULL, hint = NULL FROM people p
       WHERE r.import_id = $1 AND r.outcome IN ('failed', 'needsReview') AND p.id = r.person_id
         AND (r.profile IS NOT NULL OR r.planned = 'delete' AND r.was IS NOT NULL) RETURNING p.id`,
      [record.id],
    );
    if (skipped.length === 0 && reopened.length === 0) return undefined;
    const rowNos = skipped.map(({ rowNo }) => rowNo);
    const guards = await this.plans.evaluateThresholds(tx, record.id, rowNos);
    await tx.query(
      `UPDATE people p SET ${RESET_ASSIGNMENTS}, checked_absent_at = NULL, paused_by_import = NULL,
         review = CASE WHEN review = 'platform-user-missing' THEN review END,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END,
         state = CASE WHEN p.wanted THEN 'pending' ELSE 'deleting' END::person_state,
         step = NULL, due_at = clock_timestamp(), updated_at = clock_timestamp()
       WHERE p.id = ANY($1) AND p.state IN ('failed', 'needs-review', 'waiting', 'pending')`,
      [reopened.map(({ id }) => id)],
    );
    return guards;
  }

  /** Counts an import's rows by outcome and plan, and its calls. */
  async totals(record: ImportRecord): Promise<ImportTotals> {
    const { rows } = await this.database.pool.query<{ outcome: RowOutcome; planned: string | null; rows: number }>(
      `SELECT outcome, planned, count(*)::int AS rows FROM import_rows WHERE import_id = $1 GROUP BY outcome, planned`,
      [record.id],
    );
    const totals: ImportTotals = {
      ...{ counts: {}, deletes: {}, planned: {} },
      callsMade: record.appliedAt ? await this.callsMade(record) : 0,
      remaining: record.finishedAt ? [] : await this.remainingCalls(record),
    };
    for (const { outcome, planned, rows: count } of rows) {
      const counted = planned === 'delete' ? totals.deletes : totals.counts;
      counted[outcome] = (counted[outcome] ?? 0) + count;
      if (planned) totals.planned[planned] = (totals.planned[planned] ?? 0) + count;
    }
    return totals;
  }

  /** One page of rows in the order of the files. */
  async rows(
    id: string,
    which: { outcome?: RowOutcome; planned?: PlannedOutcome },
    limit: number,
    after: number,
  ): Promise<ImportRowRecord[]> {
    const { rows } = await this.database.pool.query<ImportRowRecord>(
      `SELECT row_no AS "rowNo", file, line, kind, external_id AS "externalId", planned, outcome, code, field, hint,
         coalesce(providers, '{}') AS providers
       FROM import_rows WHERE import_id = $1 AND row_no > $2 AND ($3::row_outcome IS NULL OR outcome = $3)
         AND ($5::text IS NULL OR planned = $5)
       ORDER BY row_no LIMIT $4`,
      [id, after, which.outcome ?? null, limit, which.planned ?? null],
    );
    return rows;
  }

  /** The files that have rejected rows, in their order, and of what kinds those are. */
  async filesWithRejects(id: string): Promise<{ file: number; kinds: (PersonKind | null)[] }[]> {
    const { rows } = await this.database.pool.query<{ file: number; kinds: (PersonKind | null)[] }>(
      `SELECT file, array_agg(DISTINCT kind::text) AS kinds FROM import_rows
       WHERE import_id = $1 AND outcome = 'rejected' GROUP BY file ORDER BY min(row_no)`,
      [id],
    );
    return rows;
  }

  private async remainingCalls(record: ImportRecord): Promise<RemainingCalls[]> {
    const { rows } = await this.database.pool.query<RemainingCalls>(
      `SELECT kind, sum(calls_min)::int AS min, sum(calls_max)::int AS max,
         count(*) FILTER (WHERE is_checked AND origin = 'linked')::int AS linked,
         count(*) FILTER (WHERE is_checked AND origin IS DISTINCT FROM 'linked')::int AS absent
       FROM (
         SELECT r.kind, p.origin, ${calls('r.calls_min')} AS calls_min, ${calls('r.calls_max')} AS calls_max,
           r.planned = 'create-or-link' AND r.email_fingerprint IS NOT NULL AND ${IS_CHECKED} AS is_checked
         FROM import_rows r LEFT JOIN people p ON p.id = r.person_id AND $2
         WHERE r.import_id = $1 AND (r.outcome = 'pending' OR r.calls_max > 0)) AS counted
       GROUP BY kind`,
      [record.id, record.appliedAt !== null],
    );
    return rows;
  }

  private async callsMade(record: ImportRecord): Promise<number> {
    const { rows } = await this.database.pool.query<{ made: number }>(
      `SELECT count(*)::int AS made FROM platform_calls c
       WHERE ${OF_ANY_ACCOUNT} AND c.granted_at >= $2 AND ($3::timestamptz IS NULL OR c.granted_at <= $3) AND c.outcome IS DISTINCT FROM 'not-sent'
         AND EXISTS (SELECT 1 FROM import_rows r WHERE r.import_id = $1 AND r.person_id = c.person_id)`,
      [record.id, record.appliedAt, record.finishedAt],
    );
    return rows[0]?.made ?? 0;
  }
}
