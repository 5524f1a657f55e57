import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { ImportRecord } from '../model/imports.repository.js';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { forget, isFilled } from '../plan/row-sql.js';
import { IS_UNCLEAR } from '../plan/snapshot-deletes.repository.js';

/** The advisory lock under which rows are chosen to start, one process at a time; any fixed number. */
const START_LOCK = 727_004;

/** Maximum clients of all imports that are started and not finished: a quarter of a minute's calls. */
const MAX_UNFINISHED = 60;
/** More clients start once so few are left, so that not every call is followed by a start. */
const REFILL_AT = 30;

/** Rows that start together if they do not count, because they are providers. */
const BATCH_ROWS = 1_000;

/** Codes of rows that another row of the same import replaces, and of rows that cannot take effect. */
const REPLACED: Rejection['code'][] = ['repeated', 'older-version'];
const WITHOUT_EFFECT: Rejection['code'][] = ['provider-in-use', 'provider-gone', 'changed-since-plan'];

/** Rows of one import that start now. */
interface NextRows {
  importId: string;
  rowNos: number[];
}

/** Decides which rows start next. */
@Injectable()
export class StartOrder {
  /**
   * The next rows to start: all providers first, then clients, then deletions of clients, and deletions of
   * providers last. Of several imports with clients, the one with the fewest rows left goes first.
   *
   * @returns undefined if none may start now, or if another process starts some
   */
  async next(tx: PoolClient): Promise<NextRows | undefined> {
    const { rows: locked } = await tx.query('SELECT pg_try_advisory_xact_lock($1) AS locked', [START_LOCK]);
    if (!locked[0].locked) return undefined;
    const { rows: imports } = await tx.query<{ id: string; phase: number }>(
      `SELECT i.id, first.phase FROM imports i
       CROSS JOIN LATERAL (SELECT phase FROM import_rows WHERE import_id = i.id AND phase IS NOT NULL ORDER BY phase LIMIT 1) AS first
       WHERE i.state = 'running' ORDER BY i.opened_at`,
    );
    const uncounted = imports.find(({ phase }) => phase === 1) ?? imports.find(({ phase }) => phase === 4);
    if (uncounted) return this.rowsOf(tx, uncounted, BATCH_ROWS);
    const room = imports.length === 0 ? 0 : await this.room(tx);
    if (room === 0) return undefined;
    const smallest = imports.length === 1 ? imports[0] : await this.smallest(tx, imports);
    return smallest && this.rowsOf(tx, smallest, room);
  }

  /**
   * Lets the latest statement of the EHR win over all imports: rows of imports that were opened earlier and have not
   * started are skipped if this one names their people, and its own if a later one does. A rejected row says nothing.
   * A snapshot also counts for people that it does not name, unless one of its rows does not name its person.
   */
  async supersede(tx: PoolClient, record: ImportRecord): Promise<void> {
    const { rows } = await tx.query<{ id: string; isLater: boolean }>(
      `SELECT i.id, i.opened_at > own.opened_at AS "isLater" FROM imports i, imports own
       WHERE own.id = $1 AND i.id <> own.id AND i.applied_at IS NOT NULL AND i.state NOT IN ('cancelled', 'failed')
         AND (i.opened_at > own.opened_at OR EXISTS (SELECT FROM import_rows r WHERE r.import_id = i.id AND r.phase IS NOT NULL))`,
      [record.id],
    );
    await this.reopen(tx, record.id);
    for (const { id, isLater } of rows) await this.skipNamed(tx, isLater ? [record.id, id] : [id, record.id]);
  }

  /** Starts rows for which the plan had nothing to do, if another import has changed their people since. */
  private async reopen(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET outcome = 'pending', code = NULL, phase = CASE r.kind WHEN 'provider' THEN 1 ELSE 2 END,
         planned = CASE WHEN NOT p.wanted OR p.platform_user_id IS NULL THEN 'create-or-link'
           WHEN r.kind = 'client' THEN 'provider-change' ELSE 'attribute-change' END
       FROM people p WHERE r.import_id = $1 AND r.outcome IN ('unchanged', 'needsReview') AND ${isFilled('r.profile')}
         AND p.id = r.person_id AND p.wanted_at <> r.person_wanted_at`,
      [importId],
    );
    const { code, hint } = rejection('changed-since-plan');
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = $2, hint = $3 FROM people p
       WHERE r.import_id = $1 AND p.kind = r.kind AND p.external_id = r.external_id
         AND p.wanted_at > (SELECT opened_at FROM imports WHERE id = $1) AND (
         r.outcome = 'unchanged' AND r.says = 'person' AND p.wanted_at <> r.person_wanted_at
         OR r.outcome = 'skipped' AND r.code = $4 AND p.wanted)`,
      [importId, code, hint, rejection('already-deleted').code],
    );
  }

  /**
   * Skips rows of an import that have not started and whose people a later one names. A row without effect counts only
   * against a deletion.
   */
  private async skipNamed(tx: PoolClient, [earlier, later]: [earlier: string, later: string]): Promise<void> {
    const { code, hint } = rejection('changed-since-read');
    await tx.query(
      `WITH named AS MATERIALIZED (
         SELECT kind, external_id, bool_or(outcome <> 'rejected' AND coalesce(code <> ALL ($5::text[]), true)) AS has_effect,
           bool_or(says <> 'deleted') AS is_there
         FROM import_rows WHERE import_id = $2 AND external_id IS NOT NULL AND coalesce(code <> ALL ($6::text[]), true)
         GROUP BY kind, external_id),
       whole AS MATERIALIZED (
         SELECT DISTINCT r.kind FROM import_rows r JOIN imports i ON i.id = r.import_id
         WHERE r.import_id = $2 AND i.mode = 'snapshot'
           AND NOT EXISTS (SELECT FROM import_rows WHERE import_id = $2 AND ${IS_UNCLEAR}))
       UPDATE import_rows r SET outcome = 'skipped', phase = NULL, ${forget()}, code = $3, hint = $4
       WHERE r.import_id = $1 AND r.phase IS NOT NULL AND CASE WHEN r.planned = 'delete'
         THEN (r.kind, r.external_id) IN (SELECT kind, external_id FROM named WHERE has_effect OR is_there)
         ELSE (r.kind, r.external_id) IN (SELECT kind, external_id FROM named WHERE has_effect)
           OR r.kind IN (SELECT kind FROM whole) AND r.external_id NOT IN (
             SELECT external_id FROM named UNION ALL SELECT unnest(mentioned) FROM imports WHERE id = $2) END`,
      [earlier, later, code, hint, WITHOUT_EFFECT, REPLACED],
    );
  }

  private async rowsOf(
    tx: PoolClient,
    { id, phase }: { id: string; phase: number },
    atOnce: number,
  ): Promise<NextRows> {
    const { rows } = await tx.query<{ rowNo: number }>(
      `SELECT row_no AS "rowNo" FROM import_rows WHERE import_id = $1 AND phase = $2 ORDER BY row_no LIMIT $3`,
      [id, phase, atOnce],
    );
    return { importId: id, rowNos: rows.map(({ rowNo }) => rowNo) };
  }

  /** How many clients may start: none while more than `REFILL_AT` are not finished. */
  private async room(tx: PoolClient): Promise<number> {
    const { rows } = await tx.query<{ unfinished: number }>(
      `SELECT count(*)::int AS unfinished FROM (
         SELECT FROM people WHERE kind = 'client' AND lane = 'bulk' AND due_at IS NOT NULL LIMIT $1) AS started`,
      [MAX_UNFINISHED],
    );
    const unfinished = rows[0]?.unfinished ?? 0;
    return unfinished > REFILL_AT ? 0 : MAX_UNFINISHED - unfinished;
  }

  private async smallest<T extends { id: string }>(tx: PoolClient, imports: readonly T[]): Promise<T | undefined> {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT import_id AS id FROM import_rows WHERE import_id = ANY ($1::uuid[]) AND phase IS NOT NULL
       GROUP BY import_id ORDER BY count(*), import_id LIMIT 1`,
      [imports.map(({ id }) => id)],
    );
    return imports.find(({ id }) => id === rows[0]?.id);
  }
}
