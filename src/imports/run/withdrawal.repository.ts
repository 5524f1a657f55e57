import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService } from '../../database/prisma.service.js';
import { DependentsRepository } from '../../people/store/dependents.repository.js';
import { PeopleRepository } from '../../people/store/people.repository.js';
import { MAY_HAVE_TOLD } from '../../platform/pauses/call-log.repository.js';
import type { Cancellation } from '../model/cancellation.js';
import { rejection } from '../parse/row/rejection.js';
import { forget } from '../plan/row-sql.js';
import { IS_APPLIED } from './later-statements.js';

/** People that one transaction withdraws. */
const BATCH = 500;

/** SQL condition: nothing was sent for person `p`, and it has neither a user nor a legal hold. */
const isUntouched = (p: string): string =>
  `${p}.platform_user_id IS NULL AND ${p}.call_id IS NULL AND ${p}.unsettled_call IS NULL AND ${p}.held_at IS NULL
    AND NOT EXISTS (SELECT FROM platform_calls WHERE person_id = ${p}.id AND ${MAY_HAVE_TOLD})`;

/** SQL condition: a cancel of import $1 withdraws person `p`, a new client. */
const isWithdrawnClient = (p: string): string => `(${p}.new_by_import IS NOT DISTINCT FROM $1 AND ${isUntouched(p)})`;

/** SQL condition: the same for a new provider, which no client may name that stays, or whose deletion may be taken back. */
const IS_WITHDRAWN_PROVIDER = `(p.new_by_import = $1 AND ${isUntouched('p')} AND NOT EXISTS (
  SELECT FROM client_providers cp JOIN people c ON c.id = cp.client_id
  WHERE cp.provider_id = p.id AND c.profile IS NOT NULL AND NOT ${isWithdrawnClient('c')}))`;

/**
 * SQL condition: row `r` is a deletion by import $1 that was not carried out, and no later import that counts says that the
 * person is gone, too. A scalar subquery, because the planner would read the rows of these imports for each row.
 */
const IS_REVOCABLE = `r.import_id = $1 AND r.replaced IS NOT NULL AND r.outcome IN ('pending', 'failed', 'needsReview')
  AND (SELECT true FROM import_rows n JOIN imports i ON i.id = n.import_id
    WHERE n.says = 'deleted' AND n.external_id = r.external_id AND n.kind = r.kind
      AND (n.outcome NOT IN ('skipped', 'rejected') OR n.code = 'already-deleted')
      AND i.opened_at > (SELECT opened_at FROM imports WHERE id = $1) AND ${IS_APPLIED} LIMIT 1) IS NULL`;

/** SQL condition: import `i` deletes person `p`, whose names are not erased yet. */
const isUnsentDeletion = (p: string): string =>
  `(NOT ${p}.wanted AND ${p}.profile IS NOT NULL AND ${p}.stated_at = i.opened_at)`;

/** SQL condition: the same, and client `p` has a provider that stays. @param stays condition of provider `q` */
const isUnsentClient = (stays: string): string =>
  `(${isUnsentDeletion('p')} AND EXISTS (SELECT FROM client_providers cp JOIN people q ON q.id = cp.provider_id
    WHERE cp.client_id = p.id AND ${stays}))`;

/** SQL condition: a cancel of import `i` withdraws the deletion of person `p`. Needs `given`, the revocable ones of providers. */
const IS_WITHDRAWN_DELETION = `CASE p.kind WHEN 'provider' THEN ${isUnsentDeletion('p')}
  ELSE ${isUnsentClient(`(q.wanted OR ${isUnsentDeletion('q')} AND q.id IN (SELECT person_id FROM given))`)} END`;

/**
 * Takes back what a cancelled import stated, as far as nothing was sent: its new people, first clients, then providers, and
 * its deletions. Meanwhile no call is made for its people (`imports.withdraws`).
 */
@Injectable()
export class WithdrawalRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly dependents: DependentsRepository,
  ) {}

  /** Withdraws the next people, or lets them stay. @returns true if there may be more */
  async withdrawNext(tx: PoolClient, importId: string): Promise<boolean> {
    return (
      (await this.withdrawNew(tx, importId, 'client', isWithdrawnClient('p'))) ||
      (await this.withdrawNew(tx, importId, 'provider', IS_WITHDRAWN_PROVIDER)) ||
      (await this.withdrawDeletions(tx, importId, 'provider', isUnsentDeletion('p'))) ||
      (await this.withdrawDeletions(tx, importId, 'client', isUnsentClient('q.wanted')))
    );
  }

  /** Counts what a cancel would do now. */
  async preview(importId: string): Promise<Cancellation> {
    const { rows } = await this.prisma.pool.query<Cancellation>(
      `WITH i AS MATERIALIZED (SELECT id, opened_at FROM imports WHERE id = $1),
       given AS MATERIALIZED (
         SELECT person_id FROM import_rows r WHERE ${IS_REVOCABLE} AND kind = 'provider'),
       new AS MATERIALIZED (
         SELECT p.id FROM people p WHERE p.new_by_import = $1
           AND CASE p.kind WHEN 'client' THEN ${isWithdrawnClient('p')} ELSE ${IS_WITHDRAWN_PROVIDER} END),
       rows AS MATERIALIZED (
         SELECT r.outcome, r.applied_at IS NOT NULL AS is_applied, r.planned = 'delete' AS deletes,
           ${IS_REVOCABLE} AND (SELECT ${IS_WITHDRAWN_DELETION} FROM people p, i WHERE p.id = r.person_id) AS is_withdrawn,
           EXISTS (SELECT FROM new WHERE new.id = r.person_id) AS is_new,
           r.outcome = 'pending' AND (SELECT p.stated_at <> i.opened_at FROM people p, i WHERE p.id = r.person_id) AS is_restated
         FROM import_rows r WHERE r.import_id = $1 AND r.outcome NOT IN ('unchanged', 'skipped', 'rejected'))
       SELECT count(*) FILTER (WHERE outcome = 'pending' AND NOT is_applied)::int AS skipped,
         (SELECT count(*)::int FROM new) AS "withdrawnPeople",
         count(*) FILTER (WHERE is_applied AND is_withdrawn)::int AS "withdrawnDeletions",
         count(*) FILTER (WHERE is_applied AND deletes AND is_withdrawn IS NOT TRUE AND is_restated IS NOT TRUE)::int AS "completedDeletions",
         count(*) FILTER (WHERE is_applied AND NOT deletes AND NOT is_new AND is_restated IS NOT TRUE)::int AS staying
       FROM rows`,
      [importId],
    );
    return rows[0] as Cancellation;
  }

  private async withdrawNew(tx: PoolClient, importId: string, kind: string, isWithdrawn: string): Promise<boolean> {
    const { rows: locked } = await tx.query<{ id: string }>(
      `SELECT id FROM people WHERE new_by_import = $1 AND kind = $2 ORDER BY id LIMIT ${BATCH} FOR UPDATE`,
      [importId, kind],
    );
    if (locked.length === 0) return false;
    const all = locked.map(({ id }) => id);
    // A statement of its own, which sees what was committed while the first one waited for its locks.
    const { rows } = await tx.query<{ id: string }>(
      `SELECT p.id FROM people p WHERE p.id = ANY ($2::uuid[]) AND ${isWithdrawn}`,
      [importId, all],
    );
    const ids = rows.map(({ id }) => id);
    await this.dependents.releaseAllClaims(await this.prisma.in(tx), ids);
    // Deleted clients may still name a provider.
    await tx.query(
      `DELETE FROM client_providers cp USING people c
       WHERE cp.provider_id = ANY ($1::uuid[]) AND c.id = cp.client_id AND c.profile IS NULL`,
      [ids],
    );
    await tx.query('DELETE FROM people WHERE id = ANY ($1::uuid[])', [ids]);
    await tx.query('UPDATE people SET new_by_import = NULL WHERE id = ANY ($1::uuid[])', [all]);
    return true;
  }

  /** Ends the rows of the people that were withdrawn. Called once all are. */
  async skipWithdrawn(tx: PoolClient, importId: string): Promise<void> {
    await this.skip(
      tx,
      importId,
      'r.applied_at IS NOT NULL AND NOT EXISTS (SELECT FROM people p WHERE p.id = r.person_id)',
      [],
    );
  }

  /** Lets people stay whose deletion was not sent, as they were before: providers first, because clients name them. */
  private async withdrawDeletions(tx: PoolClient, importId: string, kind: string, isUnsent: string): Promise<boolean> {
    const { rows: found } = await tx.query<{ rowNo: number; id: string }>(
      `SELECT r.row_no AS "rowNo", r.person_id AS id FROM import_rows r
       WHERE r.import_id = $1 AND r.replaced IS NOT NULL AND r.kind = $2 ORDER BY r.row_no LIMIT ${BATCH}`,
      [importId, kind],
    );
    if (found.length === 0) return false;
    const [rowNos, locked] = [found.map(({ rowNo }) => rowNo), found.map(({ id }) => id)];
    await tx.query('SELECT FROM people WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE', [locked]);
    // No one deletes the providers that the clients rest on.
    await tx.query(
      `SELECT FROM client_providers cp JOIN people q ON q.id = cp.provider_id
       WHERE cp.client_id = ANY ($1::uuid[]) ORDER BY q.id FOR SHARE OF q`,
      [locked],
    );
    // A scalar subquery, because the planner would read all clients for each row.
    const { rows: leaving } = await tx.query<{ rowNo: number; id: string }>(
      `SELECT r.row_no AS "rowNo", r.person_id AS id FROM import_rows r WHERE ${IS_REVOCABLE} AND r.row_no = ANY ($2::int[])
         AND (SELECT ${isUnsent} FROM people p, imports i WHERE p.id = r.person_id AND i.id = $1)`,
      [importId, rowNos],
    );
    const withdrawn = leaving.map(({ rowNo }) => rowNo);
    await tx.query(
      `UPDATE people p SET wanted = true, wanted_version = p.wanted_version + 1, wanted_at = clock_timestamp(),
         stated_at = (r.replaced ->> 'statedAt')::timestamptz, review = r.replaced ->> 'review',
         import_id = (r.replaced ->> 'importId')::uuid, urgent = (r.replaced ->> 'urgent')::boolean,
         due_at = CASE WHEN p.call_id IS NOT NULL THEN p.due_at END,
         origin = CASE WHEN p.origin = 'resolved' THEN coalesce(r.replaced ->> 'origin', p.origin) ELSE p.origin END
       FROM import_rows r WHERE r.import_id = $1 AND r.row_no = ANY ($2::int[]) AND p.id = r.person_id`,
      [importId, withdrawn],
    );
    const ids = leaving.map(({ id }) => id);
    await tx.query(
      `DELETE FROM client_providers cp USING people q
       WHERE cp.client_id = ANY ($1::uuid[]) AND q.id = cp.provider_id AND NOT q.wanted`,
      [ids],
    );
    await this.skip(tx, importId, 'r.row_no = ANY ($4::int[])', [withdrawn]);
    await tx.query('UPDATE import_rows SET replaced = NULL WHERE import_id = $1 AND row_no = ANY ($2::int[])', [
      importId,
      rowNos,
    ]);
    await this.people.decideAll(await this.prisma.in(tx), ids);
    return true;
  }

  /** Ends rows whose people are as they were before. */
  private async skip(tx: PoolClient, importId: string, which: string, values: readonly unknown[]): Promise<void> {
    const { code, hint } = rejection('cancelled');
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = $2, hint = $3, settled_at = clock_timestamp(), ${forget()}
       WHERE r.import_id = $1 AND r.outcome IN ('pending', 'failed', 'needsReview') AND ${which}`,
      [importId, code, hint, ...values],
    );
  }
}
