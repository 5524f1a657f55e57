import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { ImportRow } from '../../generated/prisma/client.js';
import { isStandingStill } from '../../people/store/due-people.repository.js';
import { IS_SENT } from '../../platform/pauses/call-log.repository.js';
import { callsLeft, callsOfImport, type DuePeople } from '../model/calls-left.js';
import type { PlannedOutcome, RowOutcome } from '../model/import.js';
import type { ImportRecord } from '../model/imports.repository.js';
import type { ImportTotals } from '../model/totals.js';
import { rejection } from '../parse/row/rejection.js';
import { IS_UNCLEAR } from '../plan/snapshot-deletes.repository.js';

/** A row as it is listed. */
export type ImportRowRecord = Pick<ImportRow, 'rowNo' | 'file' | 'line' | 'kind' | 'externalId' | 'planned'> &
  Pick<ImportRow, 'outcome' | 'code' | 'field' | 'hint' | 'corrected' | 'settledAt'>;

/** The conditions of the listed rows. */
interface RowFilter {
  outcome?: RowOutcome;
  planned?: PlannedOutcome;
  code?: string;
}

/** The place after which a page of rows begins: of the file, or among the newest outcomes. */
interface RowPlace {
  rowNo: number;
  settledAt: string;
}

/** The columns of an `ImportRowRecord`. */
const LISTED = `row_no AS "rowNo", file, line, kind, external_id AS "externalId", planned, outcome, code, field, hint, corrected,
  settled_at AS "settledAt"`;

/** SQL condition of the listed rows, with the parameters of `listed`. */
const IS_LISTED = `import_id = $1 AND ($2::row_outcome IS NULL OR outcome = $2) AND ($3::text IS NULL OR planned = $3)
  AND ($4::text IS NULL OR code = $4)`;

const listed = (id: string, { outcome, planned, code }: RowFilter): unknown[] => [
  ...[id, outcome ?? null, planned ?? null, code ?? null],
];

/** Codes of rows whose id is that of another row. */
const REPEATED: string[] = [rejection('repeated'), rejection('older-version'), rejection('duplicate-id')].map(
  ({ code }) => code,
);

/** Counts and lists the rows of imports. */
@Injectable()
export class ImportCounts {
  constructor(private readonly database: Database) {}

  /** Counts the rows of an import, and its calls. */
  async totals(record: ImportRecord, sql: Pick<PoolClient, 'query'> = this.database.pool): Promise<ImportTotals> {
    if (record.totals) return record.totals;
    const { rows } = await sql.query<Counted>(
      `SELECT outcome, planned, code, file = 0 AS "isAdded", count(*)::int AS rows, count(*) FILTER (WHERE corrected)::int AS corrected,
         count(*) FILTER (WHERE ${IS_UNCLEAR})::int AS unclear,
         applied_at IS NOT NULL AS "isApplied", sum(calls_min)::int AS min, sum(calls_max)::int AS max
       FROM import_rows WHERE import_id = $1 GROUP BY outcome, planned, code, file = 0, applied_at IS NOT NULL ORDER BY rows DESC, code`,
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
    const unapplied = { min: 0, max: 0 };
    const applied = { min: 0, max: 0 };
    for (const { outcome, planned, code, isAdded, ...count } of rows) {
      const counted = isAdded ? totals.deletes : totals.counts;
      counted[outcome] = (counted[outcome] ?? 0) + count.rows;
      if (planned) totals.planned[planned] = (totals.planned[planned] ?? 0) + count.rows;
      if (code && outcome !== 'pending') addReason(totals.reasons, { outcome, code, rows: count.rows });
      totals.corrected += count.corrected;
      totals.unclearRows += record.mode === 'snapshot' ? count.unclear : 0;
      const calls = count.isApplied ? applied : unapplied;
      if (outcome === 'pending') for (const bound of ['min', 'max'] as const) calls[bound] += count[bound];
    }
    if (['planned', 'running', 'paused'].includes(record.state))
      totals.remaining = callsOfImport(unapplied, applied, await this.due(record.id, sql));
    return totals;
  }

  /** The most calls that everyone else may need who is due, and not of an import that stands still. */
  async callsOfOthers(importId: string): Promise<number> {
    const { rows } = await this.database.pool.query<DuePeople>(
      `SELECT kind, step, count(*)::int AS people FROM people WHERE urgent AND due_at IS NOT NULL GROUP BY kind, step
       UNION ALL
       SELECT kind, step, count(*)::int FROM people
       WHERE import_id IS NULL AND NOT urgent AND due_at IS NOT NULL GROUP BY kind, step
       UNION ALL
       SELECT p.kind, p.step, count(*)::int FROM people p
       WHERE p.due_at IS NOT NULL AND p.import_id IS NOT NULL AND p.import_id = ANY (ARRAY(
         SELECT id FROM imports i WHERE id <> $1 AND finished_at IS NULL AND NOT ${isStandingStill('i.id')}))
       GROUP BY p.kind, p.step`,
      [importId],
    );
    return callsLeft(rows).max;
  }

  /** The people of an import that are due, or wait for their providers. */
  private async due(importId: string, sql: Pick<PoolClient, 'query'>): Promise<DuePeople[]> {
    const { rows } = await sql.query<DuePeople>(
      `SELECT kind, step, count(*)::int AS people FROM people WHERE import_id = $1 AND due_at IS NOT NULL GROUP BY kind, step
       UNION ALL
       SELECT kind, NULL, count(*)::int FROM people WHERE kind = 'client' AND state = 'waiting' AND import_id = $1 GROUP BY kind`,
      [importId],
    );
    return rows;
  }

  /** One page of rows, in the order of the files. @param after the number of the last row of the page before, or 0 */
  async rows(id: string, filter: RowFilter, limit: number, after: number): Promise<ImportRowRecord[]> {
    const text = `SELECT ${LISTED} FROM import_rows WHERE ${IS_LISTED} AND row_no > $6 ORDER BY row_no LIMIT $5`;
    return (await this.database.pool.query<ImportRowRecord>(text, [...listed(id, filter), limit, after])).rows;
  }

  /** One page of rows that got an outcome since they were applied, the newest first. */
  async newestRows(id: string, filter: RowFilter, limit: number, after?: RowPlace): Promise<ImportRowRecord[]> {
    const { rows } = await this.database.pool.query<ImportRowRecord>(
      `SELECT ${LISTED} FROM import_rows
       WHERE ${IS_LISTED} AND settled_at IS NOT NULL AND ($6::timestamptz IS NULL OR (settled_at, row_no) < ($6, $7))
       ORDER BY settled_at DESC, row_no DESC LIMIT $5`,
      [...listed(id, filter), limit, after?.settledAt ?? null, after?.rowNo ?? 0],
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
  isApplied: boolean;
  /** Planned calls. */
  min: number;
  max: number;
}

function addReason(reasons: ImportTotals['reasons'], reason: ImportTotals['reasons'][number]): void {
  const same = reasons.find(({ outcome, code }) => outcome === reason.outcome && code === reason.code);
  if (same) same.rows += reason.rows;
  else reasons.push(reason);
}
