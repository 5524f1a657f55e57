import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { BATCH_BY_KEY, CHANGES, forgetting, IN_BATCH, ofPerson, TO_APPLY } from '../model/batch-rows.js';
import { ApplyDeletesRepository } from './apply-deletes.repository.js';
import { ApplyListsRepository } from './apply-lists.repository.js';

/** What is wanted one after the other: providers before the clients who name them, and absent when none does any more. */
export const APPLY_PHASES = ['provider', 'client', 'client-delete', 'provider-delete'] as const;
export type ApplyPhase = (typeof APPLY_PHASES)[number];

/** The phase of a pending row `r`. */
const PHASE = `r.kind::text || CASE WHEN r.planned = 'delete' THEN '-delete' ELSE '' END`;

/**
 * Turns the rows of a plan into wishes, a batch at a time: whoever is changed at a screen meanwhile waits for a batch
 * and not for the import. People are held back (`paused_by_import`) until all of it is wanted, so that the mirror sees the whole
 * import or nothing of it. Every statement goes by the row numbers and ids of the batch, never by what the planner
 * believes of tables that were filled a moment ago.
 */
@Injectable()
export class ApplyRepository {
  constructor(
    private readonly lists: ApplyListsRepository,
    private readonly deletes: ApplyDeletesRepository,
  ) {}

  /** What is left to do of an import: phases with rows to apply, whether any are or were applied, and its last row. */
  async left(
    tx: PoolClient,
    importId: string,
  ): Promise<{ phases: ApplyPhase[]; holdsPeople: boolean; lastRow: number }> {
    const { rows } = await tx.query<{ phase: ApplyPhase }>(
      `SELECT DISTINCT ${PHASE} AS phase FROM import_rows r WHERE r.import_id = $1 AND ${TO_APPLY}`,
      [importId],
    );
    await tx.query(BATCH_BY_KEY);
    const begun = await tx.query<{ applied: boolean; lastRow: number | null }>(
      `SELECT EXISTS (SELECT 1 FROM import_rows WHERE import_id = $1 AND applied) AS applied, max(row_no) AS "lastRow"
       FROM import_rows WHERE import_id = $1`,
      [importId],
    );
    const phases = new Set(rows.map(({ phase }) => phase));
    return {
      phases: APPLY_PHASES.filter((phase) => phases.has(phase)),
      holdsPeople: phases.size > 0 || begun.rows[0]?.applied === true,
      lastRow: begun.rows[0]?.lastRow ?? 0,
    };
  }

  /**
   * Applies those of some rows that are still to be applied and belong to a phase.
   *
   * @param rowNos in the order in which they go
   * @returns how many there were
   */
  async apply(tx: PoolClient, importId: string, phase: ApplyPhase, rowNos: readonly number[]): Promise<number> {
    const batch = await this.batch(tx, importId, phase, rowNos);
    if (batch.length === 0) return 0;
    const locked = await this.lockPeople(tx, importId, batch);
    if (phase === 'client') await this.lists.lockProviders(tx, importId, batch);
    await this.skipChanged(tx, importId, batch);
    await this.remember(tx, importId, batch);
    if (phase === 'client' || phase === 'provider') await this.wantPeople(tx, importId, batch, locked);
    else await this.deletes.apply(tx, importId, phase === 'provider-delete', batch);
    await this.settle(tx, importId, batch);
    return batch.length;
  }

  /** Lets the people of some rows go, once the whole import is wanted. @returns how many there were */
  async release(tx: PoolClient, importId: string, rowNos: readonly number[]): Promise<number> {
    const { rows } = await tx.query<{ id: string }>(
      `SELECT r.person_id AS id FROM import_rows r WHERE ${IN_BATCH} AND r.applied AND r.person_id IS NOT NULL`,
      [importId, rowNos],
    );
    const { rowCount } = await tx.query(
      'UPDATE people SET paused_by_import = NULL WHERE id = ANY ($2::uuid[]) AND paused_by_import = $1',
      [importId, rows.map(({ id }) => id)],
    );
    return rowCount ?? 0;
  }

  private async batch(
    tx: PoolClient,
    importId: string,
    phase: ApplyPhase,
    rowNos: readonly number[],
  ): Promise<number[]> {
    const { rows } = await tx.query<{ rowNo: number }>(
      `SELECT r.row_no AS "rowNo" FROM import_rows r WHERE ${IN_BATCH} AND ${TO_APPLY} AND ${PHASE} = $3`,
      [importId, rowNos, phase],
    );
    const due = new Set(rows.map(({ rowNo }) => rowNo));
    return rowNos.filter((rowNo) => due.has(rowNo));
  }

  private async lockPeople(tx: PoolClient, importId: string, batch: number[]): Promise<string[]> {
    const { rows } = await tx.query<{ id: string | null }>(
      `SELECT ${ofPerson('p.id')} AS id FROM import_rows r WHERE ${IN_BATCH}`,
      [importId, batch],
    );
    const locked = await tx.query<{ id: string }>(
      'SELECT id FROM people WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE',
      [rows.map(({ id }) => id)],
    );
    return locked.rows.map(({ id }) => id);
  }

  /** A person that somebody changed since the plan is left alone; one that a cancelled import took back is gone. */
  private async skipChanged(tx: PoolClient, importId: string, batch: number[]): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'changed-since-plan',
         hint = 'This person was taken back after the plan was made: nobody is left to delete.'
       WHERE ${IN_BATCH} AND r.outcome = 'pending' AND r.planned = 'delete' AND ${ofPerson('p.id')} IS NULL`,
      [importId, batch],
    );
    await this.skipTouched(tx, importId, batch);
  }

  private async skipTouched(tx: PoolClient, importId: string, batch: number[]): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'changed-since-plan',
         hint = CASE WHEN r.planned = 'delete' THEN 'This person was changed after the plan was made, and is kept.'
           ELSE 'This person was changed after the plan was made: retry to plan it anew.' END
       WHERE ${IN_BATCH} AND r.outcome = 'pending' AND ${ofPerson('p.wanted_at IS DISTINCT FROM r.person_wanted_at')}`,
      [importId, batch],
    );
  }

  /** Keeps what was wanted of the people whom rows are about to change, should the import be cancelled. */
  private async remember(tx: PoolClient, importId: string, batch: number[]): Promise<void> {
    const was = `jsonb_build_object('wanted', p.wanted, 'profile', encode(p.profile, 'base64'),
      'profileHash', encode(p.profile_hash, 'base64'), 'emailFingerprint', encode(p.email_fingerprint, 'base64'),
      'fault', p.fault, 'review', p.review, 'providers', coalesce((
        SELECT jsonb_agg(cp.provider_id ORDER BY cp.position) FROM client_providers cp WHERE cp.client_id = p.id), '[]'))`;
    await tx.query(`UPDATE import_rows r SET was = ${ofPerson(was)} WHERE ${IN_BATCH} AND r.outcome = 'pending'`, [
      importId,
      batch,
    ]);
  }

  /**
   * The moments, to the microsecond, are those of the insertions: people go in the order in which they are inserted here,
   * and clients who wait meanwhile come back into it (`DependentsRepository.clientsOf`). Whoever is being served at a screen
   * is not held back, and nobody is touched who came since the others were locked.
   */
  private async wantPeople(tx: PoolClient, importId: string, batch: number[], locked: string[]): Promise<void> {
    const { rows } = await tx.query<{ id: string }>(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, lane, state,
         wanted_at, due_at, paused_by_import)
       SELECT gen_random_uuid(), kind, external_id, profile, profile_hash, email_fingerprint, 'bulk', 'pending',
         clock_timestamp(), clock_timestamp(), $1
       FROM (SELECT r.* FROM import_rows r WHERE ${IN_BATCH} AND r.outcome = 'pending' AND ${CHANGES}
         ORDER BY array_position($2::int[], r.row_no)) AS r
       ON CONFLICT (kind, external_id) DO UPDATE SET wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash, email_fingerprint = excluded.email_fingerprint,
         fault = NULL, retry_at = NULL, failures = 0, lost_creates = 0, wanted_at = excluded.wanted_at,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END,
         paused_by_import = CASE WHEN p.due_at IS NULL OR p.lane = 'bulk' THEN excluded.paused_by_import END,
         review = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint THEN NULL ELSE p.review END,
         checked_absent_at = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint
           THEN NULL ELSE p.checked_absent_at END,
         state = 'pending', step = NULL, due_at = excluded.due_at, updated_at = clock_timestamp()
       WHERE p.id = ANY ($3::uuid[])
       RETURNING p.id`,
      [importId, batch, locked],
    );
    const ids = rows.map(({ id }) => id);
    const { rows: creates } = await tx.query<{ id: string }>(
      `WITH wanted AS (
         UPDATE import_rows r SET person_id = ${ofPerson('p.id')}, person_wanted_at = ${ofPerson('p.wanted_at')}
         WHERE ${IN_BATCH} AND r.outcome = 'pending' AND ${ofPerson('p.id = ANY ($3::uuid[])')}
         RETURNING person_id AS id, planned)
       SELECT id FROM wanted WHERE planned = 'create-or-link'`,
      [importId, batch, ids],
    );
    await this.skipTouched(tx, importId, batch); // who came while this batch began
    await this.claimEmails(
      tx,
      creates.map(({ id }) => id),
    );
    await this.lists.want(tx, importId, batch, ids);
  }

  /** Of several new people with one email the plan left one to be created; it gets the email, whoever is looked at first. */
  private async claimEmails(tx: PoolClient, people: string[]): Promise<void> {
    await tx.query(
      `WITH people AS MATERIALIZED (
         SELECT id, email_fingerprint, platform_user_id FROM people WHERE id = ANY ($1::uuid[]))
       INSERT INTO email_claims (fingerprint, person_id)
       SELECT email_fingerprint, id FROM people WHERE email_fingerprint IS NOT NULL AND platform_user_id IS NULL
       ON CONFLICT (fingerprint) DO NOTHING`,
      [people],
    );
  }

  /** A changed name or email of somebody who is mirrored takes no call: the platform shows no operation for it. */
  private async settle(tx: PoolClient, importId: string, batch: number[]): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET applied = true, ${forgetting(`r.planned = 'attribute-change'`)},
         outcome = CASE WHEN r.planned = 'attribute-change' THEN 'updated' ELSE r.outcome END,
         code = CASE WHEN r.planned = 'attribute-change' THEN 'not-pushable' ELSE r.code END,
         hint = CASE WHEN r.planned = 'attribute-change'
           THEN 'The change is kept here; the platform has no operation that changes a name or an email.' ELSE r.hint END
       WHERE ${IN_BATCH} AND r.outcome = 'pending'`,
      [importId, batch],
    );
  }
}
