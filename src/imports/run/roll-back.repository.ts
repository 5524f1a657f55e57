import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { IS_LEASED } from '../../queue/due-rows/lease.js';

/** People whom a round may roll back, and their rows, one beside the other. */
type Idle = [importId: string, people: string[], rows: number[]];

/**
 * Idle people with their rows, by keys alone: without statistics of an import that was applied a moment ago the planner
 * would look through all its rows for each of them.
 */
const IDLE = `unnest($2::uuid[], $3::int[]) AS idle(id, row_no) JOIN import_rows r ON r.import_id = $1 AND r.row_no = idle.row_no`;

/** Those of them whom this round has not released. */
const PAUSED = 'p.id = idle.id AND p.paused_by_import = $1';

/** An import pauses nobody else; found by its rows, since most people are not paused. */
const OF_IMPORT = 'id IN (SELECT person_id FROM import_rows WHERE import_id = $1)';

/** Nothing was changed on the platform for a new person, and no client was merged into it: there is no user, or one who was found there. */
const UNSENT = `r.was IS NULL AND (p.platform_user_id IS NULL OR p.origin = 'linked')
  AND NOT EXISTS (SELECT FROM people m WHERE m.merged_into = p.id)`;

/** Rolls back what an import applied and did not get done. */
@Injectable()
export class RollBackRepository {
  /** Releases the people whom it still pauses. */
  async release(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(`UPDATE people SET paused_by_import = NULL WHERE paused_by_import = $1 AND ${OF_IMPORT}`, [
      importId,
    ]);
  }

  /**
   * Rolls back pending rows that were not sent: people get the desired state back that they had before, new ones are
   * deleted. A call under way is waited for, and an unknown outcome is resolved first: those rows stay pending until the
   * next round.
   */
  async rollBack(tx: PoolClient, importId: string): Promise<void> {
    // Pauses those whom an earlier round released; interactive work is left alone.
    await tx.query(
      `UPDATE people p SET paused_by_import = $1 FROM import_rows r
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND p.id = r.person_id AND p.wanted_at = r.person_wanted_at
         AND r.applied AND p.lane = 'bulk' AND p.paused_by_import IS NULL`,
      [importId],
    );
    const idle = await this.lockIdle(tx, importId);
    await this.restorePrevious(tx, idle);
    await this.keepLists(tx, idle);
    for (const kind of ['client', 'provider']) await this.deleteNew(tx, idle, kind);
    await this.releaseFinished(tx, idle);
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'cancelled', profile = NULL, was = NULL, was_profile = NULL,
         hint = 'The import was cancelled, or failed, before this row was done.'
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND (NOT r.applied
         OR NOT EXISTS (SELECT 1 FROM people p WHERE p.id = r.person_id AND p.wanted_at = r.person_wanted_at))`,
      [importId],
    );
  }

  /**
   * The paused people of pending rows whose desired state is still the row's, and of whom no call is under way or without
   * a known outcome. A deleted one stays so: a second person in its place would be another to the platform.
   *
   * Found once for the whole round, and locked: a person who becomes idle between two of its statements would be passed
   * over by the one and released by the other.
   */
  private async lockIdle(tx: PoolClient, importId: string): Promise<Idle> {
    const { rows } = await tx.query<{ id: string; rowNo: number }>(
      `SELECT p.id, r.row_no AS "rowNo" FROM import_rows r JOIN people p ON p.id = r.person_id AND p.wanted_at = r.person_wanted_at
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.applied AND p.paused_by_import = $1 AND p.state <> 'deleted'
         AND p.attempt_call_id IS NULL AND NOT ${IS_LEASED}
       ORDER BY p.id FOR UPDATE OF p`,
      [importId],
    );
    return [importId, rows.map(({ id }) => id), rows.map(({ rowNo }) => rowNo)];
  }

  /** The restored state is another than the row's, so that these rows are skipped afterwards. */
  private async restorePrevious(tx: PoolClient, idle: Idle): Promise<void> {
    const { rows } = await tx.query<{ id: string }>(
      `UPDATE people p SET paused_by_import = NULL, wanted = (r.was->>'wanted')::boolean, profile = r.was_profile,
         profile_hash = decode(r.was->>'profileHash', 'base64'),
         email_fingerprint = decode(r.was->>'emailFingerprint', 'base64'),
         fault = r.was->>'fault', review = r.was->>'review', checked_absent_at = NULL,
         wanted_at = clock_timestamp() + interval '1 millisecond', step = NULL, due_at = clock_timestamp(),
         state = CASE WHEN (r.was->>'wanted')::boolean THEN 'pending' ELSE 'deleting' END::person_state
       FROM ${IDLE}
       WHERE ${PAUSED} AND r.was IS NOT NULL AND ((r.was->>'wanted')::boolean OR p.platform_user_id IS NULL)
       RETURNING p.id`,
      idle,
    );
    await this.replaceLists(
      tx,
      rows,
      `SELECT r.person_id, listed.position - 1, q.id FROM import_rows r
       CROSS JOIN jsonb_array_elements_text(r.was->'providers') WITH ORDINALITY AS listed(id, position)
       JOIN people q ON q.id = listed.id::uuid
       WHERE r.person_id = ANY($1) AND r.import_id = $2`,
      idle[0],
    );
  }

  /** A client whom the import created keeps the list that the platform has: the rest of it was not sent. */
  private async keepLists(tx: PoolClient, idle: Idle): Promise<void> {
    const { rows } = await tx.query<{ id: string }>(
      `UPDATE people p SET paused_by_import = NULL, step = NULL, due_at = clock_timestamp() FROM ${IDLE}
       WHERE ${PAUSED} AND NOT (${UNSENT}) AND p.kind = 'client' AND p.providers_known RETURNING p.id`,
      idle,
    );
    await this.replaceLists(
      tx,
      rows,
      `SELECT p.id, listed.position - 1, q.id FROM people p
       CROSS JOIN unnest(p.applied_providers) WITH ORDINALITY AS listed(user_id, position)
       JOIN people q ON q.platform_user_id = listed.user_id
       WHERE p.id = ANY($1)`,
    );
  }

  /** @param lists of the people $1: a client, a position and a provider each @param values from $2 on */
  private async replaceLists(
    tx: PoolClient,
    people: readonly { id: string }[],
    lists: string,
    ...values: unknown[]
  ): Promise<void> {
    const ids = people.map(({ id }) => id);
    await tx.query('DELETE FROM client_providers WHERE client_id = ANY($1)', [ids]);
    await tx.query(`INSERT INTO client_providers (client_id, position, provider_id) ${lists}`, [ids, ...values]);
  }

  /** A provider whom a client of another origin names is not deleted: it goes on, and its row with it. */
  private async deleteNew(tx: PoolClient, idle: Idle, kind: string): Promise<void> {
    await tx.query(
      `WITH deleted AS (
         DELETE FROM people p USING ${IDLE} WHERE ${PAUSED} AND ${UNSENT} AND p.kind = $4::person_kind
           AND NOT EXISTS (SELECT 1 FROM client_providers cp WHERE cp.provider_id = p.id)
         RETURNING p.id)
       UPDATE people p SET due_at = clock_timestamp(), step = NULL
       FROM deleted JOIN email_claims released ON released.person_id = deleted.id
       WHERE p.email_fingerprint = released.fingerprint AND p.error_code = 'email-taken'`,
      [...idle, kind],
    );
  }

  /** People with a call to resolve go on; one under way stays paused for the next round, with the providers it names. */
  private async releaseFinished(tx: PoolClient, idle: Idle): Promise<void> {
    await tx.query(
      `UPDATE people SET paused_by_import = NULL WHERE paused_by_import = $1 AND ${OF_IMPORT} AND attempt_call_id IS NOT NULL
         AND NOT ${IS_LEASED}`,
      [idle[0]],
    );
    await tx.query(
      `UPDATE people p SET paused_by_import = NULL FROM ${IDLE} WHERE ${PAUSED} AND NOT EXISTS (
         SELECT 1 FROM client_providers cp JOIN people c ON c.id = cp.client_id
         WHERE cp.provider_id = p.id AND c.paused_by_import = $1)`,
      idle,
    );
  }
}
