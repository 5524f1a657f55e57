import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService } from '../../database/prisma.service.js';
import { DependentsRepository } from '../../people/store/dependents.repository.js';
import { PeopleRepository } from '../../people/store/people.repository.js';
import type { Cancellation } from '../model/cancellation.js';
import { rejection } from '../parse/row/rejection.js';
import { forget } from '../plan/row-sql.js';

/** People that one transaction withdraws. */
const BATCH = 500;

/** SQL condition: no call has made a user of person `p`, or may make one. */
const isUntouched = (p: string): string =>
  `${p}.platform_user_id IS NULL AND ${p}.call_id IS NULL AND ${p}.unsettled_call IS NULL AND ${p}.held_at IS NULL`;

/** SQL condition: a cancel of import $1 withdraws person `p`, a new client. */
const isWithdrawnClient = (p: string): string => `(${p}.new_by_import IS NOT DISTINCT FROM $1 AND ${isUntouched(p)})`;

/** SQL condition: the same for a new provider, which no client may name that stays. */
const IS_WITHDRAWN_PROVIDER = `(p.new_by_import = $1 AND ${isUntouched('p')} AND NOT EXISTS (
  SELECT FROM client_providers cp JOIN people c ON c.id = cp.client_id
  WHERE cp.provider_id = p.id AND c.wanted AND NOT ${isWithdrawnClient('c')}))`;

/** SQL condition: a cancel of import `i` withdraws the deletion of person `p`, whose names are not erased yet. */
const IS_WITHDRAWN_DELETION = `(NOT p.wanted AND p.profile IS NOT NULL AND p.call_id IS NULL AND p.stated_at = i.opened_at)`;

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
      (await this.withdrawDeletions(tx, importId))
    );
  }

  /** Counts what a cancel would do now. */
  async preview(importId: string): Promise<Cancellation> {
    const { rows } = await this.prisma.pool.query<Cancellation>(
      `WITH i AS MATERIALIZED (SELECT id, opened_at FROM imports WHERE id = $1),
       new AS MATERIALIZED (
         SELECT p.id FROM people p WHERE p.new_by_import = $1
           AND CASE p.kind WHEN 'client' THEN ${isWithdrawnClient('p')} ELSE ${IS_WITHDRAWN_PROVIDER} END)
       SELECT
         count(*) FILTER (WHERE r.outcome = 'pending' AND r.applied_at IS NULL)::int AS skipped,
         (SELECT count(*)::int FROM new) AS "withdrawnPeople",
         count(*) FILTER (WHERE r.replaced IS NOT NULL AND (SELECT ${IS_WITHDRAWN_DELETION} FROM people p, i WHERE p.id = r.person_id))::int
           AS "withdrawnDeletions",
         count(*) FILTER (WHERE r.outcome = 'deleted' OR r.replaced IS NOT NULL AND r.outcome <> 'skipped'
           AND (SELECT ${IS_WITHDRAWN_DELETION} FROM people p, i WHERE p.id = r.person_id) IS NOT TRUE)::int AS "completedDeletions",
         count(*) FILTER (WHERE r.applied_at IS NOT NULL AND r.replaced IS NULL AND r.outcome NOT IN ('deleted', 'skipped')
           AND r.person_id NOT IN (SELECT id FROM new))::int AS staying
       FROM import_rows r WHERE r.import_id = $1`,
      [importId],
    );
    return rows[0] as Cancellation;
  }

  private async withdrawNew(tx: PoolClient, importId: string, kind: string, isWithdrawn: string): Promise<boolean> {
    const { rows } = await tx.query<{ id: string; externalId: string; isWithdrawn: boolean }>(
      `SELECT p.id, p.external_id AS "externalId", ${isWithdrawn} AS "isWithdrawn" FROM people p
       WHERE p.new_by_import = $1 AND p.kind = $2 ORDER BY p.id LIMIT ${BATCH} FOR UPDATE`,
      [importId, kind],
    );
    if (rows.length === 0) return false;
    const staying = rows.filter((row) => !row.isWithdrawn).map(({ id }) => id);
    await tx.query('UPDATE people SET new_by_import = NULL WHERE id = ANY ($1::uuid[])', [staying]);
    const leaving = rows.filter((row) => row.isWithdrawn);
    const ids = leaving.map(({ id }) => id);
    await this.dependents.releaseAllClaims(await this.prisma.in(tx), ids);
    // Clients that are being deleted may still name a provider.
    await tx.query('DELETE FROM client_providers WHERE provider_id = ANY ($1::uuid[])', [ids]);
    await tx.query('DELETE FROM people WHERE id = ANY ($1::uuid[])', [ids]);
    await this.skip(tx, importId, 'r.kind = $4 AND r.external_id = ANY ($5::text[])', [
      kind,
      leaving.map(({ externalId }) => externalId),
    ]);
    return true;
  }

  /** Lets people stay whose deletion was not sent, as they were before: providers first, because clients name them. */
  private async withdrawDeletions(tx: PoolClient, importId: string): Promise<boolean> {
    const { rows } = await tx.query<{ rowNo: number; id: string; isWithdrawn: boolean }>(
      `SELECT r.row_no AS "rowNo", p.id, ${IS_WITHDRAWN_DELETION} AS "isWithdrawn"
       FROM import_rows r JOIN imports i ON i.id = r.import_id JOIN people p ON p.id = r.person_id
       WHERE r.import_id = $1 AND r.replaced IS NOT NULL ORDER BY r.kind, p.id LIMIT ${BATCH} FOR UPDATE OF p`,
      [importId],
    );
    if (rows.length === 0) return false;
    const rowNos = rows.map(({ rowNo }) => rowNo);
    const leaving = rows.filter(({ isWithdrawn }) => isWithdrawn);
    const withdrawn = leaving.map(({ rowNo }) => rowNo);
    await tx.query(
      `UPDATE people p SET wanted = true, wanted_version = p.wanted_version + 1, wanted_at = clock_timestamp(),
         stated_at = (r.replaced ->> 'statedAt')::timestamptz, review = r.replaced ->> 'review', import_id = NULL, due_at = NULL,
         origin = CASE WHEN p.origin = 'resolved' THEN coalesce(r.replaced ->> 'origin', p.origin) ELSE p.origin END
       FROM import_rows r WHERE r.import_id = $1 AND r.row_no = ANY ($2::int[]) AND p.id = r.person_id`,
      [importId, withdrawn],
    );
    await this.skip(tx, importId, 'r.row_no = ANY ($4::int[])', [withdrawn]);
    await tx.query('UPDATE import_rows SET replaced = NULL WHERE import_id = $1 AND row_no = ANY ($2::int[])', [
      importId,
      rowNos,
    ]);
    const ids = leaving.map(({ id }) => id);
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
