import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import type { ImportRow } from '../../generated/prisma/client.js';
import { LEGAL_HOLD } from '../../people/rules/person-codes.js';
import { PeopleRepository } from '../../people/store/people.repository.js';
import { IS_SENT } from '../../platform/pauses/call-log.repository.js';
import type { PlannedOutcome, RowOutcome } from '../model/import.js';
import type { ImportRecord } from '../model/imports.repository.js';
import type { ImportTotals } from '../model/totals.js';
import { rejection } from '../parse/row/rejection.js';
import { forget, isFilled } from '../plan/row-sql.js';
import { IS_UNCLEAR } from '../plan/snapshot-deletes.repository.js';

/** A row as it is listed. */
export type ImportRowRecord = Pick<ImportRow, 'rowNo' | 'file' | 'line' | 'kind' | 'externalId' | 'planned'> &
  Pick<ImportRow, 'outcome' | 'code' | 'field' | 'hint' | 'corrected'>;

/** The conditions of the listed rows. */
interface RowFilter {
  outcome?: RowOutcome;
  planned?: PlannedOutcome;
  code?: string;
}

/** The columns of an `ImportRowRecord`. */
const LISTED = `row_no AS "rowNo", file, line, kind, external_id AS "externalId", planned, outcome, code, field, hint, corrected`;

const isFailed = (person: string) => `${person}.state = 'failed'`;

/** A client's provider failed, needs review or will be deleted, so that the client does not follow automatically. */
const isHopeless = (client: string) => `EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
  WHERE cp.client_id = ${client}.id AND (${isFailed('q')} OR q.state = 'needs-review' OR NOT q.wanted))`;

/** Clients whose list on the platform contains a provider that will be deleted. */
const LISTING = 'SELECT 1 FROM people c WHERE c.applied_providers @> ARRAY[p.platform_user_id] AND c.wanted';

/** The person who has this person's email is being deleted, or will be by import $1. */
const LEAVING = `EXISTS (SELECT 1 FROM email_claims e JOIN people h ON h.id = e.person_id
  WHERE e.fingerprint = p.email_fingerprint AND (NOT h.wanted AND h.state = 'deleting'
    OR h.id IN (SELECT person_id FROM import_rows WHERE import_id = $1 AND phase > 2)))`;

/** Outcomes after which the content of a row is no longer needed. */
const DONE = `('created', 'linked', 'updated', 'deleted', 'skipped')`;

/** Codes of rows whose id is that of another row. */
const REPEATED: string[] = [rejection('repeated'), rejection('older-version'), rejection('duplicate-id')].map(
  ({ code }) => code,
);

/** The results of rows. */
@Injectable()
export class OutcomesRepository {
  constructor(
    private readonly database: Database,
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
  ) {}

  /** Gives applied rows the outcome of their people. @returns how many rows are not finished, applied or not */
  async resolve(tx: PoolClient, importId: string): Promise<number> {
    const { code, hint } = rejection('changed-since-read');
    await tx.query(
      `WITH resolved AS (
         SELECT r.row_no, p.error_code,
           CASE
             WHEN p.wanted = (r.planned = 'delete') THEN 'skipped'
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
         FROM import_rows r JOIN people p ON p.id = r.person_id
         WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.started_at IS NOT NULL)
       UPDATE import_rows r SET outcome = resolved.outcome::row_outcome,
         ${forget(`resolved.outcome IN ${DONE}`)},
         code = CASE WHEN resolved.outcome = 'skipped' THEN $2 WHEN resolved.outcome IN ('failed', 'needsReview') THEN resolved.error_code END,
         hint = CASE WHEN resolved.outcome = 'skipped' THEN $3 END
       FROM resolved WHERE r.import_id = $1 AND r.row_no = resolved.row_no AND resolved.outcome IS NOT NULL`,
      [importId, code, hint],
    );
    const { rows } = await tx.query<{ open: number }>(
      `SELECT (SELECT count(*) FROM import_rows WHERE import_id = $1 AND outcome = 'pending' AND started_at IS NOT NULL)::int
         + (SELECT count(*) FROM import_rows WHERE import_id = $1 AND phase IS NOT NULL)::int AS open`,
      [importId],
    );
    return rows[0]?.open ?? 0;
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
         SELECT row_no FROM import_rows WHERE import_id = $1 AND outcome = 'pending' AND started_at IS NULL LIMIT $4))`,
      [importId, code, hint, atOnce],
    );
    return rowCount === atOnce;
  }

  /** Retries rows that failed or need review, with their people, and rows that could not be applied. @returns how many */
  async retry(tx: PoolClient, importId: string): Promise<number> {
    const { rowCount: unapplied } = await tx.query(
      `UPDATE import_rows SET outcome = 'pending', code = NULL, hint = NULL,
         phase = CASE WHEN planned = 'delete' THEN CASE kind WHEN 'client' THEN 3 ELSE 4 END
           WHEN kind = 'provider' THEN 1 ELSE 2 END
       WHERE import_id = $1 AND outcome = 'failed' AND code = $2`,
      [importId, rejection('start-failed').code],
    );
    const { rows: people } = await tx.query<{ id: string }>(
      `UPDATE import_rows r SET outcome = 'pending', code = NULL, hint = NULL, started_at = coalesce(r.started_at, clock_timestamp())
       FROM people p
       WHERE r.import_id = $1 AND r.outcome IN ('failed', 'needsReview') AND p.id = r.person_id AND p.wanted = (r.planned <> 'delete')
       RETURNING p.id`,
      [importId],
    );
    if (people.length > 0) {
      const ids = people.map(({ id }) => id);
      await this.people.retryAll(await this.prisma.in(tx), ids);
    }
    return (unapplied ?? 0) + people.length;
  }

  /** Counts the rows of an import, and its calls. */
  async totals(record: ImportRecord, sql: Pick<PoolClient, 'query'> = this.database.pool): Promise<ImportTotals> {
    if (record.totals) return record.totals;
    const { rows } = await sql.query<Counted>(
      `SELECT outcome, planned, code, file = 0 AS "isAdded", count(*)::int AS rows, count(*) FILTER (WHERE corrected)::int AS corrected,
         count(*) FILTER (WHERE ${IS_UNCLEAR})::int AS unclear,
         coalesce(sum(calls_min) FILTER (WHERE outcome = 'pending'), 0)::int AS "callsMin",
         coalesce(sum(calls_max) FILTER (WHERE outcome = 'pending'), 0)::int AS "callsMax"
       FROM import_rows WHERE import_id = $1 GROUP BY outcome, planned, code, file = 0 ORDER BY rows DESC, code`,
      [record.id],
    );
    const totals: ImportTotals = {
      ...{ counts: {}, deletes: {}, planned: {}, reasons: [], corrected: 0, unclearRows: 0 },
      repeatedIds: rows.some(({ code }) => code !== null && REPEATED.includes(code))
        ? await this.repeatedIds(record.id, sql)
        : 0,
      callsMade: record.appliedAt ? await this.callsMade(record, sql) : 0,
      remaining: { min: 0, max: 0 },
    };
    const hasCalls = ['planned', 'running', 'paused'].includes(record.state);
    for (const { outcome, planned, code, isAdded, ...count } of rows) {
      const counted = isAdded ? totals.deletes : totals.counts;
      counted[outcome] = (counted[outcome] ?? 0) + count.rows;
      if (planned) totals.planned[planned] = (totals.planned[planned] ?? 0) + count.rows;
      if (code && outcome !== 'pending') addReason(totals.reasons, { outcome, code, rows: count.rows });
      totals.corrected += count.corrected;
      totals.unclearRows += record.mode === 'snapshot' ? count.unclear : 0;
      if (hasCalls) totals.remaining.min += count.callsMin;
      if (hasCalls) totals.remaining.max += count.callsMax;
    }
    return totals;
  }

  /** One page of rows, in the order of the files. */
  async rows(
    id: string,
    { outcome, planned, code }: RowFilter,
    limit: number,
    after: number,
  ): Promise<ImportRowRecord[]> {
    const { rows } = await this.database.pool.query<ImportRowRecord>(
      `SELECT ${LISTED} FROM import_rows
       WHERE import_id = $1 AND row_no > $2 AND ($3::row_outcome IS NULL OR outcome = $3)
         AND ($5::text IS NULL OR planned = $5) AND ($6::text IS NULL OR code = $6)
       ORDER BY row_no LIMIT $4`,
      [id, after, outcome ?? null, limit, planned ?? null, code ?? null],
    );
    return rows;
  }

  private async repeatedIds(importId: string, sql: Pick<PoolClient, 'query'>): Promise<number> {
    const { rows } = await sql.query<{ ids: number }>(
      `SELECT count(DISTINCT (kind, external_id))::int AS ids FROM import_rows
       WHERE import_id = $1 AND outcome IN ('skipped', 'rejected') AND code = ANY ($2::text[])`,
      [importId, REPEATED],
    );
    return rows[0]?.ids ?? 0;
  }

  private async callsMade(record: ImportRecord, sql: Pick<PoolClient, 'query'>): Promise<number> {
    const { rows } = await sql.query<{ made: number }>(
      `SELECT count(*)::int AS made FROM platform_calls c
       WHERE c.at >= $2 AND ($3::timestamptz IS NULL OR c.at <= $3) AND ${IS_SENT}
         AND EXISTS (SELECT 1 FROM import_rows r WHERE r.import_id = $1 AND r.person_id = c.person_id)`,
      [record.id, record.appliedAt, record.finishedAt],
    );
    return rows[0]?.made ?? 0;
  }
}

interface Counted {
  outcome: RowOutcome;
  planned: string | null;
  code: string | null;
  /** A deletion that a snapshot added. */
  isAdded: boolean;
  rows: number;
  corrected: number;
  unclear: number;
  callsMin: number;
  callsMax: number;
}

function addReason(reasons: ImportTotals['reasons'], reason: ImportTotals['reasons'][number]): void {
  const same = reasons.find(({ outcome, code }) => outcome === reason.outcome && code === reason.code);
  if (same) same.rows += reason.rows;
  else reasons.push(reason);
}
