import { Injectable } from '@nestjs/common';
import type { Pool, PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Feed } from '../../feed/feed.js';
import type { Guard } from './import-guards.js';
import { APPLYING, BATCH_BY_KEY, BEING_READ, NOT_BEGUN, RECORD, UNDER_WAY } from './import-sql.js';
import type { ImportRecord, ImportRequest, ImportState } from './import-types.js';

type Sql = Pick<Pool | PoolClient, 'query'>;

const TO_PREPARE = `(${NOT_BEGUN} OR ${APPLYING})`;
const MAY_BE_ATTEMPTED = '(attempt_at IS NULL OR attempt_at <= clock_timestamp())';

/** Milliseconds without a batch after which an import's worker counts as dead; a batch takes a fraction of it. */
const STALE_MS = 5_000;

/** Why an import failed as a whole. */
interface ImportFault {
  code: string;
  detail: string;
}

/** The imports themselves: where each stands. */
@Injectable()
export class ImportsRepository {
  constructor(
    private readonly database: Database,
    private readonly feed: Feed,
  ) {}

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

  /** Begins an import, or begins it anew when an earlier run broke off. @returns false when it was read already, or cancelled */
  begin(id: string, request: ImportRequest): Promise<boolean> {
    const { kind, mode, dryRun, defaultProvider, idSystems, createdBy, encounterSince } = request;
    return changes(
      this.database.pool,
      `INSERT INTO imports AS i (id, kind, mode, dry_run, default_provider, id_systems, state, created_by, encounter_since)
       VALUES ($1, $2, $3, $4, $5, $6, 'staging', $7, $8)
       ON CONFLICT (id) DO UPDATE SET state = 'staging', error_code = NULL, error_detail = NULL, finished_at = NULL,
         alive_at = clock_timestamp() WHERE i.staged_at IS NULL AND i.state <> 'cancelled'`,
      [id, kind, mode, dryRun, defaultProvider ?? null, idSystems, createdBy, encounterSince ?? null],
    );
  }

  /** Records that its reader is at work. @returns false when the import ended meanwhile */
  keepAlive(id: string): Promise<boolean> {
    const sql = `UPDATE imports SET alive_at = clock_timestamp() WHERE id = $1 AND ${BEING_READ}`;
    return changes(this.database.pool, sql, [id]);
  }

  /** Imports whose reader did not show for so many milliseconds. */
  async stale(staleMs: number): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ id: string }>(
      `SELECT id FROM imports WHERE ${BEING_READ} AND alive_at < clock_timestamp() - $1 * interval '1 millisecond'`,
      [staleMs],
    );
    return rows.map((row) => row.id);
  }

  /** It was read to its end. @param files sealed (`ImportFiles`) @returns false when it was given up meanwhile */
  staged(tx: PoolClient, id: string, files: Buffer): Promise<boolean> {
    const sql = `UPDATE imports SET staged_at = clock_timestamp(), files = $2 WHERE id = $1 AND state = 'staging'`;
    return changes(tx, sql, [id, files]);
  }

  /** Ends an import that could not be read; one that was read to its end, by an unconfirmed commit, goes on. */
  failReading(tx: PoolClient, id: string, fault: ImportFault): Promise<boolean> {
    return this.fail(tx, id, fault, BEING_READ);
  }

  /** Ends an import that could not be planned, unless another worker succeeded with it. @returns whether it ended */
  failPlan(tx: PoolClient, id: string, fault: ImportFault): Promise<boolean> {
    return this.fail(tx, id, fault, NOT_BEGUN);
  }

  /** Fails an import that is being applied; it ends once that was rolled back. @returns false when it is not applied */
  failApply(tx: PoolClient, id: string, { code, detail }: ImportFault): Promise<boolean> {
    const sql = `UPDATE imports SET state = 'failed', apply_wanted = false, steered_to = 0, error_code = $2,
      error_detail = $3 WHERE id = $1 AND ${APPLYING}`;
    return changes(tx, sql, [id, code, detail]);
  }

  /** Whether any import is to be planned or applied. */
  isAnyDue(): Promise<boolean> {
    return changes(this.database.pool, `SELECT 1 FROM imports WHERE ${TO_PREPARE} AND ${MAY_BE_ATTEMPTED} LIMIT 1`, []);
  }

  /**
   * Begins an attempt with the next import: one that is being applied, then in the order in which they were read to their
   * ends. The lock is waited for: an import that was passed over would be applied after those behind it.
   *
   * @returns undefined when there is none, or another process works on it
   */
  async beginNext(tx: PoolClient): Promise<ImportRecord | undefined> {
    const { rows } = await tx.query<{ id: string; isTaken: boolean }>(
      `SELECT id, ${APPLYING} AND alive_at > clock_timestamp() - $1 * interval '1 millisecond' AS "isTaken"
       FROM imports WHERE ${TO_PREPARE} AND ${MAY_BE_ATTEMPTED}
       ORDER BY ${APPLYING} DESC, staged_at LIMIT 1 FOR NO KEY UPDATE`,
      [STALE_MS],
    );
    const [next] = rows;
    if (!next || next.isTaken) return undefined;
    const begun = await tx.query<ImportRecord>(
      `UPDATE imports SET attempts = attempts + 1, alive_at = clock_timestamp(),
         state = CASE state WHEN 'planned' THEN 'running' ELSE state END,
         applied_at = CASE WHEN state = 'staging' THEN applied_at ELSE coalesce(applied_at, clock_timestamp()) END
       WHERE id = $1 RETURNING ${RECORD}`,
      [next.id],
    );
    return begun.rows[0];
  }

  /** The plan was made. @returns false when the import ended meanwhile */
  planned(tx: PoolClient, id: string, guards: Guard[], mayApply: boolean): Promise<boolean> {
    return changes(
      tx,
      `UPDATE imports SET state = CASE WHEN $2 THEN 'running' ELSE 'planned' END, apply_wanted = $2, guards = $3,
         attempts = 0, attempt_at = NULL, alive_at = clock_timestamp(), applied_at = CASE WHEN $2 THEN clock_timestamp() END
       WHERE id = $1 AND state = 'staging'`,
      [id, mayApply, JSON.stringify(guards)],
    );
  }

  /** Locks an import for one batch. @returns false when it is not to be applied any more */
  async lockApplying(tx: PoolClient, id: string): Promise<boolean> {
    await tx.query(BATCH_BY_KEY);
    return changes(tx, `UPDATE imports SET alive_at = clock_timestamp() WHERE id = $1 AND ${APPLYING}`, [id]);
  }

  /** A batch was done: attempts are counted anew. */
  async resetAttempts(tx: PoolClient, id: string): Promise<void> {
    await tx.query('UPDATE imports SET attempts = 0 WHERE id = $1 AND attempts > 0', [id]);
  }

  /** All its rows are applied. */
  async applied(tx: PoolClient, id: string): Promise<void> {
    const sql = `UPDATE imports SET apply_wanted = false, attempts = 0, attempt_at = NULL WHERE id = $1 AND ${APPLYING}`;
    await tx.query(sql, [id]);
  }

  async attemptAgain(tx: PoolClient, id: string, afterMs: number): Promise<void> {
    const sql = `UPDATE imports SET attempt_at = clock_timestamp() + $2 * interval '1 millisecond'
      WHERE id = $1 AND ${TO_PREPARE}`;
    await tx.query(sql, [id, afterMs]);
  }

  /** How many imports could not be prepared and wait for another attempt. */
  async putOff(): Promise<number> {
    const { rows } = await this.database.pool.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM imports WHERE ${TO_PREPARE} AND attempts > 0 AND attempt_at IS NOT NULL`,
    );
    return rows[0]?.count ?? 0;
  }

  /** Imports whose people have not all followed the last pause, cancel or resume. */
  async steered(): Promise<string[]> {
    const { rows } = await this.database.pool.query<{ id: string }>(
      'SELECT id FROM imports WHERE steered_to IS NOT NULL ORDER BY staged_at',
    );
    return rows.map(({ id }) => id);
  }

  /** Locks one of them for a batch. @returns undefined when all have followed */
  async lockSteered(tx: PoolClient, id: string): Promise<(ImportRecord & { lastRow: number }) | undefined> {
    await tx.query(BATCH_BY_KEY);
    const { rows } = await tx.query<ImportRecord & { lastRow: number }>(
      `SELECT ${RECORD}, coalesce((SELECT max(row_no) FROM import_rows r WHERE r.import_id = imports.id), 0) AS "lastRow"
       FROM imports WHERE id = $1 AND steered_to IS NOT NULL FOR NO KEY UPDATE`,
      [id],
    );
    return rows[0];
  }

  /** @param row the last whose person followed; null: all have */
  async followed(tx: PoolClient, id: string, row: number | null): Promise<void> {
    await tx.query('UPDATE imports SET steered_to = $2 WHERE id = $1', [id, row]);
  }

  /** Imports whose rows may still change. */
  async underWay(): Promise<Pick<ImportRecord, 'id' | 'state'>[]> {
    const { rows } = await this.database.pool.query<Pick<ImportRecord, 'id' | 'state'>>(
      `SELECT id, state FROM imports WHERE ${UNDER_WAY} ORDER BY staged_at`,
    );
    return rows;
  }

  /** Locks one of them; undefined when it has ended, or another worker has it. */
  async lockUnderWay(tx: PoolClient, id: string): Promise<ImportRecord | undefined> {
    const { rows } = await tx.query<ImportRecord>(
      `SELECT ${RECORD} FROM imports WHERE id = $1 AND ${UNDER_WAY} FOR NO KEY UPDATE SKIP LOCKED`,
      [id],
    );
    return rows[0];
  }

  /**
   * Changes the state: its people are paused or released from this moment on, in their rows batch by batch (`steered`),
   * unless applying it does that at its end.
   *
   * @param applyWanted rows of it are still to be applied, once it is running; any worker may begin at once
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

  /** Asks for a planned import to be applied. */
  async wantApply(sql: Sql, id: string, overrides: string[]): Promise<void> {
    await sql.query(
      'UPDATE imports SET apply_wanted = true, overrides = $2, attempts = 0, attempt_at = NULL WHERE id = $1',
      [id, overrides],
    );
  }

  /** Ends an import, and publishes that. */
  async end(tx: PoolClient, id: string, state: 'completed' | 'cancelled' | 'failed'): Promise<void> {
    await tx.query('UPDATE imports SET state = $2, finished_at = clock_timestamp() WHERE id = $1', [id, state]);
    await this.feed.append(tx, { type: 'import.finished', subject: `imports/${id}`, data: { id, state } });
  }

  /**
   * Refreshes the planner's statistics after many rows or people changed at once: otherwise it takes them for a few, and
   * looks through all of one for each of the other. A sample of 3,000 rows will do; sealed columns are never compared.
   */
  async analyse(tx: PoolClient): Promise<void> {
    await tx.query('SET LOCAL default_statistics_target = 10');
    await tx.query('ANALYZE import_rows (import_id, row_no, kind, external_id, outcome, planned, applied, person_id)');
    await tx.query(
      'ANALYZE people (id, kind, external_id, state, wanted, wanted_at, lane, due_at, paused_by_import, error_code)',
    );
    await tx.query('ANALYZE client_providers');
  }

  private async fail(tx: PoolClient, id: string, { code, detail }: ImportFault, where: string): Promise<boolean> {
    const sql = `UPDATE imports SET error_code = $2, error_detail = $3 WHERE id = $1 AND ${where}`;
    const failed = await changes(tx, sql, [id, code, detail]);
    if (failed) await this.end(tx, id, 'failed');
    return failed;
  }
}

/** Runs a statement about one import. @returns whether it met a row */
async function changes(sql: Sql, text: string, values: unknown[]): Promise<boolean> {
  return (await sql.query(text, values)).rowCount === 1;
}
