import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import type { PersonKind } from '../../people/rules/person.js';
import { PlatformUsersRepository } from '../../people/store/platform-users.repository.js';
import type { PlannedOutcome } from '../model/import.js';
import { type Rejection, rejection } from '../parse/row/rejection.js';
import { forget, listAfter, providersOf, rejectFormerIds } from '../plan/row-sql.js';
import { LaterStatements } from './later-statements.js';

/** Rows that are applied in one transaction. */
const BATCH_ROWS = 500;

/** SQL condition: row `r` is one of these rows of an import. */
export const IN_BATCH = 'r.import_id = $1 AND r.row_no = ANY ($2::int[])';
const UNAPPLIED = `${IN_BATCH} AND r.phase IS NOT NULL`;

/** SQL of the person of a row `r`, as a scalar subquery: the planner knows little of tables that were just filled. */
export const ofPerson = (value: string): string =>
  `(SELECT ${value} FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`;

/** Some rows of one import and one phase. */
export interface Batch {
  importId: string;
  rowNos: readonly number[];
}

/** A row to apply, and what is known of its person now. */
export interface RowToApply {
  rowNo: number;
  kind: PersonKind;
  externalId: string;
  planned: PlannedOutcome;
  /** As it was written. */
  platformUserId: string | null;
  profile: Buffer | null;
  /** The person's, before the row. */
  knownFingerprint: Buffer | null;
  /** The client's list after the row. */
  providers: string[] | null;
  personId: string | null;
  isWanted: boolean | null;
  /** The EHR said something later than the upload. */
  isOutdated: boolean | null;
  /** The platform user of the person. */
  mappedUserId: string | null;
  /** A call of the person may still make a user. */
  isCallOpen: boolean | null;
  /** Clients name this provider. */
  isNamed: boolean;
}

/** Rows of a running import that were not applied yet. */
@Injectable()
export class RowsToApply {
  constructor(
    private readonly prisma: PrismaService,
    private readonly users: PlatformUsersRepository,
    private readonly later: LaterStatements,
  ) {}

  /**
   * The numbers of the next rows: all providers come first, then clients, deletions of clients, and of providers. None while
   * another running import has providers to apply, because its clients may name them, or while a cancelled import takes
   * back what it stated, because until then it counts.
   */
  async next(importId: string): Promise<number[]> {
    const { rows } = await this.prisma.pool.query<{ rowNos: number[] }>(
      `SELECT ARRAY(SELECT row_no FROM import_rows WHERE import_id = i.id AND phase = first.phase ORDER BY row_no LIMIT $2) AS "rowNos"
       FROM imports i
       CROSS JOIN LATERAL (SELECT phase FROM import_rows WHERE import_id = i.id AND phase IS NOT NULL ORDER BY phase LIMIT 1) AS first
       WHERE i.id = $1 AND i.state = 'running' AND NOT EXISTS (SELECT FROM imports WHERE withdraws) AND (first.phase = 1 OR NOT EXISTS (
         SELECT FROM imports o JOIN import_rows r ON r.import_id = o.id AND r.phase = 1 WHERE o.state = 'running' AND o.id <> i.id))`,
      [importId, BATCH_ROWS],
    );
    return rows[0]?.rowNos ?? [];
  }

  /**
   * Locks the people of a batch in the order of their ids, then its rows, as a DELETE does. Skips rows that must not be
   * applied.
   *
   * @returns the others; none if the import does not run any more, or if another process has applied the batch
   */
  async take(tx: Tx, { importId, rowNos }: Batch): Promise<RowToApply[]> {
    const sql = this.prisma.sql(tx);
    const lock = `SELECT FROM imports WHERE id = $1 AND state = 'running' AND NOT EXISTS (SELECT FROM imports WHERE withdraws)
      FOR NO KEY UPDATE`;
    if ((await sql.query(lock, [importId])).rowCount === 0) return [];
    await this.lockPeople(sql, { importId, rowNos });
    const { rows: locked } = await sql.query<{ rowNo: number }>(
      `SELECT r.row_no AS "rowNo" FROM import_rows r WHERE ${UNAPPLIED} ORDER BY r.row_no FOR NO KEY UPDATE`,
      [importId, rowNos],
    );
    const batch: Batch = { importId, rowNos: locked.map(({ rowNo }) => rowNo) };
    if (batch.rowNos.length === 0) return [];
    await rejectFormerIds(sql, UNAPPLIED, [importId, batch.rowNos]);
    const gone = await this.goneProviders(sql, batch);
    const outdated = await this.later.outdated(sql, importId, batch.rowNos);
    const taken: RowToApply[] = [];
    const skipped: (Rejection & { rowNo: number })[] = [];
    for (const row of await this.read(sql, batch)) {
      const isOutdated = row.isOutdated === true || outdated.has(row.rowNo);
      const reason = skipReason({ ...row, isOutdated }, gone) ?? (await this.linkFault(tx, row));
      if (reason) skipped.push({ ...reason, rowNo: row.rowNo });
      else taken.push(row);
    }
    await this.skip(sql, importId, skipped);
    return taken;
  }

  /** Ends a row whose application threw, so that the others continue. A retry of the import applies it again. */
  async fail(importId: string, rowNo: number): Promise<void> {
    const { code, hint } = rejection('apply-failed');
    await this.prisma.pool.query(
      `UPDATE import_rows r SET outcome = 'failed', phase = NULL, code = $3, hint = $4, settled_at = clock_timestamp()
       WHERE ${UNAPPLIED}`,
      [importId, [rowNo], code, hint],
    );
  }

  /**
   * Locks the people of a batch, and the unfinished providers that its clients name. These belong to this import from now on,
   * so that its clients don't wait for an import that is paused.
   */
  private async lockPeople(tx: PoolClient, { importId, rowNos }: Batch): Promise<void> {
    const isElsewhere = 'import_id <> $1 AND due_at IS NOT NULL AND wanted';
    const { rows } = await tx.query<{ id: string | null; isProvider: boolean }>(
      `SELECT ${ofPerson('p.id')} AS id, false AS "isProvider" FROM import_rows r WHERE ${IN_BATCH}
       UNION ALL
       SELECT (SELECT id FROM people WHERE kind = 'provider' AND external_id = one.provider AND ${isElsewhere}), true
       FROM (SELECT DISTINCT unnest(r.providers) AS provider FROM import_rows r WHERE ${IN_BATCH}) AS one`,
      [importId, rowNos],
    );
    const lock = 'SELECT FROM people WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE';
    await tx.query(lock, [rows.map(({ id }) => id)]);
    const providers = rows.flatMap(({ id, isProvider }) => (isProvider && id !== null ? [id] : []));
    if (providers.length === 0) return;
    const takeOver = `UPDATE people SET import_id = $1 WHERE id = ANY ($2::uuid[]) AND ${isElsewhere}`;
    await tx.query(takeOver, [importId, providers]);
  }

  private async read(tx: PoolClient, { importId, rowNos }: Batch): Promise<RowToApply[]> {
    const { rows } = await tx.query<RowToApply>(
      `SELECT r.row_no AS "rowNo", r.kind, r.external_id AS "externalId", r.planned, r.platform_user_id AS "platformUserId",
         r.profile, ${ofPerson('p.email_fingerprint')} AS "knownFingerprint",
         CASE WHEN r.kind = 'client' THEN ${listAfter(ofPerson(providersOf('p.id')))} END AS providers,
         ${ofPerson('p.id')} AS "personId", ${ofPerson('p.wanted')} AS "isWanted",
         ${ofPerson('p.stated_at > i.opened_at')} AS "isOutdated",
         ${ofPerson('p.platform_user_id')} AS "mappedUserId",
         ${ofPerson(`p.call_id IS NOT NULL OR p.unsettled_call IS NOT NULL AND p.state NOT IN ('needs-review', 'failed')`)} AS "isCallOpen",
         r.kind = 'provider' AND r.planned = 'delete' AND EXISTS (SELECT FROM client_providers cp JOIN people c ON c.id = cp.client_id
           WHERE cp.provider_id = ${ofPerson('p.id')} AND c.wanted) AS "isNamed"
       FROM import_rows r JOIN imports i ON i.id = r.import_id WHERE ${UNAPPLIED} ORDER BY r.row_no`,
      [importId, rowNos],
    );
    return rows;
  }

  /** Providers named by these rows that no longer exist. Locks the others, so that they stay until the commit. */
  private async goneProviders(tx: PoolClient, { importId, rowNos }: Batch): Promise<Set<string>> {
    const named = await tx.query<{ id: string }>(
      `SELECT DISTINCT unnest(r.providers || ${ofPerson(providersOf('p.id'))}) AS id FROM import_rows r
       WHERE ${UNAPPLIED} AND r.kind = 'client'`,
      [importId, rowNos],
    );
    if (named.rows.length === 0) return new Set();
    const { rows } = await tx.query<{ id: string }>(
      `SELECT external_id AS id FROM people
       WHERE kind = 'provider' AND external_id = ANY ($1::text[]) AND wanted ORDER BY id FOR KEY SHARE`,
      [named.rows.map(({ id }) => id)],
    );
    const known = new Set(rows.map(({ id }) => id));
    return new Set(named.rows.flatMap(({ id }) => (known.has(id) ? [] : [id])));
  }

  /** Why a row cannot be linked to its platform user by now. */
  private async linkFault(tx: Tx, row: RowToApply): Promise<Rejection | undefined> {
    const { platformUserId } = row;
    if (platformUserId === null) return undefined;
    if (row.mappedUserId === platformUserId) return undefined;
    const field = 'platformUserId';
    if (row.mappedUserId !== null) return rejection('linked-otherwise', { field });
    if (row.isCallOpen) return rejection('call-under-way', { field });
    const { person: holder } = await this.users.describe(platformUserId, tx);
    const isOther = holder && !(holder.kind === row.kind && holder.externalId === row.externalId);
    return isOther ? rejection('platform-user-taken', { field }) : undefined;
  }

  private async skip(
    tx: PoolClient,
    importId: string,
    skipped: readonly (Rejection & { rowNo: number })[],
  ): Promise<void> {
    if (skipped.length === 0) return;
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', phase = NULL, settled_at = clock_timestamp(), ${forget()}, code = n.code, field = n.field, hint = n.hint
       FROM unnest($2::int[], $3::text[], $4::text[], $5::text[]) AS n(row_no, code, field, hint)
       WHERE r.import_id = $1 AND r.row_no = n.row_no`,
      [
        importId,
        ...[skipped.map(({ rowNo }) => rowNo), skipped.map(({ code }) => code)],
        ...[skipped.map(({ field }) => field ?? null), skipped.map(({ hint }) => hint)],
      ],
    );
  }
}

/** Why a row is skipped instead of applied. */
function skipReason(row: RowToApply, gone: ReadonlySet<string>): Rejection | undefined {
  if (row.isOutdated) return rejection('changed-since-read');
  if (row.planned === 'delete') {
    if (row.isNamed) return rejection('provider-in-use', { field: 'providers' });
    return row.isWanted ? undefined : rejection('already-deleted');
  }
  const { kind, providers } = row;
  if (kind === 'client' && (!providers?.length || providers.some((id) => gone.has(id))))
    return rejection('provider-gone');
  return undefined;
}
