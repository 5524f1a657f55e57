import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Feed } from '../../feed/feed.js';
import type { PersonKind } from '../../people/model/person.js';
import { APPLYING, BEING_READ, NOT_BEGUN, RECORD, UNDER_WAY } from './import-sql.js';
import type { ImportRecord, ImportRequest, ImportState, PlannedOutcome, RowOutcome } from './import-types.js';

type Sql = Pick<Pool | PoolClient, 'query'>;

/** A row as it is listed. */
export interface ImportRowRecord {
  rowNo: number;
  file: number;
  line: number;
  kind: PersonKind | null;
  externalId: string | null;
  planned: string | null;
  outcome: RowOutcome;
  code: string | null;
  field: string | null;
  hint: string | null;
}

/** Why an import failed as a whole. */
interface ImportFault {
  code: string;
  detail: string;
}

/** A rejected row, and the providers that were found for it. */
export type RejectedRecord = ImportRowRecord & { providers: string[] };

/** Imports and their rows, as rows. */
@Injectable()
export class ImportsRepository {
  constructor(
    private readonly database: Database,
    private readonly feed: Feed,
  ) {}

  /** Begins an import, or begins it anew when an earlier run broke off. @returns false when it was read already, or cancelled */
  async begin(id: string, request: ImportRequest): Promise<boolean> {
    const { rowCount } = await this.database.pool.query(
      `INSERT INTO imports AS i (id, kind, mode, dry_run, default_provider, id_systems, state, created_by, encounter_since)
       VALUES ($1, $2, $3, $4, $5, $6, 'staging', $7, $8)
       ON CONFLICT (id) DO UPDATE SET state = 'staging', error_code = NULL, error_detail = NULL, finished_at = NULL,
         alive_at = clock_timestamp() WHERE i.staged_at IS NULL AND i.state <> 'cancelled'`,
      [
        id,
        request.kind,
        request.mode,
        request.dryRun,
        request.defaultProvider ?? null,
        request.idSystems,
        request.createdBy,
        request.encounterSince ?? null,
      ],
    );
    return rowCount === 1;
  }

  /**
   * Says that the reader is at work; an import whose reader fell silent is given up.
   *
   * @returns false when the import ended meanwhile: it is not to be read any further
   */
  async keepAlive(id: string): Promise<boolean> {
    const { rowCount } = await this.database.pool.query(
      `UPDATE imports SET alive_at = clock_timestamp() WHERE id = $1 AND ${BEING_READ}`,
      [id],
    );
    return rowCount === 1;
  }

  /**
   * The import was read to its end.
   *
   * @param files sealed (`ImportFiles`)
   * @returns false when it was given up meanwhile
   */
  async staged(tx: PoolClient, id: string, files: Buffer): Promise<boolean> {
    const { rowCount } = await tx.query(
      `UPDATE imports SET staged_at = clock_timestamp(), files = $2 WHERE id = $1 AND state = 'staging'`,
      [id, files],
    );
    return rowCount === 1;
  }

  /** Ends an import that could not be read; one that was read to its end after all, by a commit in doubt, goes on. */
  async failReading(tx: PoolClient, id: string, error: ImportFault): Promise<void> {
    await this.fail(tx, id, error, BEING_READ);
  }

  /**
   * Ends an import that could not be planned; one with which another worker succeeded goes on.
   *
   * @returns whether it ended
   */
  async failPlan(tx: PoolClient, id: string, error: ImportFault): Promise<boolean> {
    return this.fail(tx, id, error, NOT_BEGUN);
  }

  /**
   * Fails an import of which a part is wanted already: like a cancelled one it ends once that was taken back.
   *
   * @returns false when it is not being applied
   */
  async failApply(tx: PoolClient, id: string, { code, detail }: ImportFault): Promise<boolean> {
    const { rowCount } = await tx.query(
      `UPDATE imports SET state = 'failed', apply_wanted = false, steered_to = 0, error_code = $2, error_detail = $3
       WHERE id = $1 AND ${APPLYING}`,
      [id, code, detail],
    );
    return rowCount === 1;
  }

  /** Imports that are being read by nobody any more. @param silentMs milliseconds without a sign of life */
  async silent(silentMs: number): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ id: string }>(
      `SELECT id FROM imports WHERE ${BEING_READ}
         AND alive_at < clock_timestamp() - $1 * interval '1 millisecond'`,
      [silentMs],
    );
    return rows.map((row) => row.id);
  }

  async find(id: string, sql: Sql = this.database.pool): Promise<ImportRecord | undefined> {
    const { rows } = await sql.query<ImportRecord>(`SELECT ${RECORD} FROM imports WHERE id = $1`, [id]);
    return rows[0];
  }

  /** The newest imports first. @param before the creation time and id of the last one seen */
  async list(limit: number, before?: { createdAt: string; id: string }): Promise<ImportRecord[]> {
    const { rows } = await this.database.pool.query<ImportRecord>(
      `SELECT ${RECORD} FROM imports WHERE $2::timestamptz IS NULL OR (created_at, id) < ($2, $3::uuid)
       ORDER BY created_at DESC, id DESC LIMIT $1`,
      [limit, before?.createdAt ?? null, before?.id ?? null],
    );
    return rows;
  }

  /**
   * Tells the planner of the rows that were read, and of people who came or changed many at once: without that it takes
   * them for a few, and looks through all of one for each of the other. A sample of 3,000 rows will do; sealed columns
   * are never compared, and would cost more than all others.
   */
  async analyse(tx: PoolClient): Promise<void> {
    await tx.query('SET LOCAL default_statistics_target = 10');
    await tx.query('ANALYZE import_rows (import_id, row_no, kind, external_id, outcome, planned, applied, person_id)');
    await tx.query(
      'ANALYZE people (id, kind, external_id, state, wanted, wanted_at, lane, due_at, paused_by_import, error_code)',
    );
    await tx.query('ANALYZE client_providers');
  }

  /** Imports whose rows may still change. */
  async underWay(): Promise<Pick<ImportRecord, 'id' | 'state'>[]> {
    const { rows } = await this.database.pool.query<Pick<ImportRecord, 'id' | 'state'>>(
      `SELECT id, state FROM imports WHERE ${UNDER_WAY} ORDER BY staged_at`,
    );
    return rows;
  }

  /** Locks one of them; undefined when it is not any more, or somebody else is at it. */
  async lockUnderWay(tx: PoolClient, id: string): Promise<ImportRecord | undefined> {
    const { rows } = await tx.query<ImportRecord>(
      `SELECT ${RECORD} FROM imports WHERE id = $1 AND ${UNDER_WAY} FOR NO KEY UPDATE SKIP LOCKED`,
      [id],
    );
    return rows[0];
  }

  /**
   * Whoever is wanted of it is held back, or let go, from this moment on; batch by batch in the rows (`ImportSteering`),
   * unless applying it does that at its end.
   *
   * @param applyWanted rows of it are still to be wanted, once it is running; any worker may begin with that at once
   */
  async enter(tx: PoolClient, id: string, state: ImportState, applyWanted = false): Promise<void> {
    await tx.query(
      `UPDATE imports SET state = $2, apply_wanted = $3, attempts = 0, attempt_at = NULL, finished_at = NULL,
         steered_to = CASE WHEN applied_at IS NOT NULL AND NOT ($2 = 'running' AND $3) THEN 0 END,
         alive_at = CASE WHEN $3 THEN '-infinity' ELSE alive_at END,
         applied_at = CASE WHEN $2 = 'running' THEN coalesce(applied_at, clock_timestamp()) ELSE applied_at END
       WHERE id = $1`,
      [id, state, applyWanted],
    );
  }

  /** Ends an import, and tells the EHR. */
  async end(tx: PoolClient, id: string, state: 'completed' | 'cancelled' | 'failed'): Promise<void> {
    await tx.query('UPDATE imports SET state = $2, finished_at = clock_timestamp() WHERE id = $1', [id, state]);
    await this.feed.append(tx, { type: 'import.finished', subject: `imports/${id}`, data: { id, state } });
  }

  /** Asks for a planned import to be applied. */
  async wantApply(sql: Sql, id: string, overrides: string[]): Promise<void> {
    await sql.query(
      'UPDATE imports SET apply_wanted = true, overrides = $2, attempts = 0, attempt_at = NULL WHERE id = $1',
      [id, overrides],
    );
  }

  /** One page of rows in the order of the files. */
  async rows(
    id: string,
    which: { outcome?: RowOutcome; planned?: PlannedOutcome },
    limit: number,
    after: number,
  ): Promise<ImportRowRecord[]> {
    const { rows } = await this.database.pool.query<ImportRowRecord>(
      `SELECT row_no AS "rowNo", file, line, kind, external_id AS "externalId", planned, outcome, code, field, hint
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

  /** Rejected rows, a page at a time. */
  async rejected(id: string, after: number, limit: number): Promise<RejectedRecord[]> {
    const { rows } = await this.database.pool.query<RejectedRecord>(
      `SELECT row_no AS "rowNo", file, line, kind, external_id AS "externalId", outcome, code, field, hint,
         coalesce(providers, '{}') AS providers
       FROM import_rows WHERE import_id = $1 AND row_no > $2 AND outcome = 'rejected' ORDER BY row_no LIMIT $3`,
      [id, after, limit],
    );
    return rows;
  }

  private async fail(tx: PoolClient, id: string, { code, detail }: ImportFault, where: string): Promise<boolean> {
    const { rowCount } = await tx.query(
      `UPDATE imports SET error_code = $2, error_detail = $3 WHERE id = $1 AND ${where}`,
      [id, code, detail],
    );
    if (rowCount === 1) await this.end(tx, id, 'failed');
    return rowCount === 1;
  }
}
