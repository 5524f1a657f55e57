import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { IS_LEASED } from '../../queue/due-rows/lease.js';
import { ReferencesRepository } from '../plan/references.repository.js';

/** People whom a round may take back, and the rows that want them, one beside the other. */
interface Idle {
  people: string[];
  rows: number[];
}

/**
 * Idle people with their rows, by keys alone: the planner knows nothing yet of an import that was applied a moment ago,
 * and would look through all its rows for each of them.
 */
const IDLE = `unnest($2::uuid[], $3::int[]) AS idle(id, row_no) JOIN import_rows r ON r.import_id = $1 AND r.row_no = idle.row_no`;

/** Those of them whom this round has not let go. */
const HELD = 'p.id = idle.id AND p.paused_by_import = $1';

/** Nobody else can be held back by an import: found by its rows, since most people are not. */
const OF_IMPORT = 'id IN (SELECT person_id FROM import_rows WHERE import_id = $1)';

/** Nothing was changed on the platform for somebody who is new: nobody, or a user who was found there. */
const UNSENT = `r.was IS NULL AND (p.platform_user_id IS NULL OR p.origin = 'linked')`;

/** Taking back what an import wanted and did not get. */
@Injectable()
export class CancelRepository {
  constructor(private readonly references: ReferencesRepository) {}

  /** Holds back whom an earlier round let go on; interactive work is left alone. */
  private async hold(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `UPDATE people p SET paused_by_import = $1 FROM import_rows r
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND p.id = r.person_id AND p.wanted_at = r.person_wanted_at
         AND r.applied AND p.lane = 'bulk' AND p.paused_by_import IS NULL`,
      [importId],
    );
  }

  /** Lets whoever is held by it go on: it has ended. */
  async release(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(`UPDATE people SET paused_by_import = NULL WHERE paused_by_import = $1 AND ${OF_IMPORT}`, [
      importId,
    ]);
  }

  /** Whoever is still held goes on, and nothing is kept that only a plan would need: the import has ended for good. */
  async end(tx: PoolClient, importId: string): Promise<void> {
    await this.release(tx, importId);
    await this.references.forget(tx, importId);
  }

  /**
   * Takes back what is wanted by pending rows and was not sent: people get the wish back that they had before, whoever
   * is new is forgotten. A call under way is waited for, and a call without an answer is settled first: those rows stay
   * pending until the next round.
   */
  async rollBack(tx: PoolClient, importId: string): Promise<void> {
    await this.hold(tx, importId);
    const idle = await this.lockIdle(tx, importId);
    await this.restorePrevious(tx, importId, idle);
    await this.keepLists(tx, importId, idle);
    for (const kind of ['client', 'provider']) await this.forgetNew(tx, importId, idle, kind);
    await this.releaseFinished(tx, importId, idle);
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'cancelled', profile = NULL, was = NULL,
         hint = 'The import was cancelled, or failed, before this row was done.'
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND (NOT r.applied
         OR NOT EXISTS (SELECT 1 FROM people p WHERE p.id = r.person_id AND p.wanted_at = r.person_wanted_at))`,
      [importId],
    );
  }

  /**
   * The held people of pending rows whose last wish is still the one that the row made, and of whom no call is under way
   * or without a known outcome. Whoever else asked for a person since keeps it, and who is deleted stays so: the row is
   * done, and a second person in its place would be somebody else to the platform.
   *
   * Found once for the whole round, and locked: whoever becomes idle between two of its statements would be passed over
   * by the one and let go on by the other.
   */
  private async lockIdle(tx: PoolClient, importId: string): Promise<Idle> {
    const { rows } = await tx.query<{ id: string; rowNo: number }>(
      `SELECT p.id, r.row_no AS "rowNo" FROM import_rows r JOIN people p ON p.id = r.person_id AND p.wanted_at = r.person_wanted_at
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.applied AND p.paused_by_import = $1 AND p.state <> 'deleted'
         AND p.attempt_call_id IS NULL AND NOT ${IS_LEASED}
       ORDER BY p.id FOR UPDATE OF p`,
      [importId],
    );
    return { people: rows.map(({ id }) => id), rows: rows.map(({ rowNo }) => rowNo) };
  }

  /**
   * Whoever has a call to settle, or is needed by somebody else, goes on; what is under way stays held for the next
   * round, and with it the providers whom it alone names.
   */
  private async releaseFinished(tx: PoolClient, importId: string, idle: Idle): Promise<void> {
    await tx.query(
      `UPDATE people SET paused_by_import = NULL WHERE paused_by_import = $1 AND ${OF_IMPORT} AND attempt_call_id IS NOT NULL
         AND NOT ${IS_LEASED}`,
      [importId],
    );
    await tx.query(
      `UPDATE people p SET paused_by_import = NULL FROM ${IDLE} WHERE ${HELD} AND NOT EXISTS (
         SELECT 1 FROM client_providers cp JOIN people c ON c.id = cp.client_id
         WHERE cp.provider_id = p.id AND c.paused_by_import = $1)`,
      [importId, idle.people, idle.rows],
    );
  }

  /** The changed wish is another than the row's, so that these rows are skipped afterwards. */
  private async restorePrevious(tx: PoolClient, importId: string, idle: Idle): Promise<void> {
    const { rows } = await tx.query<{ id: string }>(
      `UPDATE people p SET paused_by_import = NULL, wanted = (r.was->>'wanted')::boolean, profile = decode(r.was->>'profile', 'base64'),
         profile_hash = decode(r.was->>'profileHash', 'base64'),
         email_fingerprint = decode(r.was->>'emailFingerprint', 'base64'),
         fault = r.was->>'fault', review = r.was->>'review', checked_absent_at = NULL,
         wanted_at = clock_timestamp() + interval '1 millisecond', step = NULL, due_at = clock_timestamp(),
         state = CASE WHEN (r.was->>'wanted')::boolean THEN 'pending' ELSE 'deleting' END::person_state
       FROM ${IDLE}
       WHERE ${HELD} AND r.was IS NOT NULL AND ((r.was->>'wanted')::boolean OR p.platform_user_id IS NULL)
       RETURNING p.id`,
      [importId, idle.people, idle.rows],
    );
    const ids = rows.map((row) => row.id);
    await tx.query('DELETE FROM client_providers WHERE client_id = ANY($1)', [ids]);
    await tx.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT r.person_id, listed.position - 1, q.id FROM import_rows r
       CROSS JOIN jsonb_array_elements_text(r.was->'providers') WITH ORDINALITY AS listed(id, position)
       JOIN people q ON q.id = listed.id::uuid
       WHERE r.import_id = $1 AND r.person_id = ANY($2)`,
      [importId, ids],
    );
  }

  /** A client whom the import created keeps the list that the platform has: the rest of it was not sent. */
  private async keepLists(tx: PoolClient, importId: string, idle: Idle): Promise<void> {
    const { rows } = await tx.query<{ id: string }>(
      `UPDATE people p SET paused_by_import = NULL, step = NULL, due_at = clock_timestamp() FROM ${IDLE}
       WHERE ${HELD} AND NOT (${UNSENT}) AND p.kind = 'client' AND p.providers_known RETURNING p.id`,
      [importId, idle.people, idle.rows],
    );
    const ids = rows.map((row) => row.id);
    await tx.query('DELETE FROM client_providers WHERE client_id = ANY($1)', [ids]);
    await tx.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT p.id, listed.position - 1, q.id FROM people p
       CROSS JOIN unnest(p.applied_providers) WITH ORDINALITY AS listed(user_id, position)
       JOIN people q ON q.platform_user_id = listed.user_id
       WHERE p.id = ANY($1)`,
      [ids],
    );
  }

  /** A provider whom somebody else's client names is not forgotten: it goes on, and its row with it. */
  private async forgetNew(tx: PoolClient, importId: string, idle: Idle, kind: string): Promise<void> {
    await tx.query(
      `WITH forgotten AS (
         DELETE FROM people p USING ${IDLE} WHERE ${HELD} AND ${UNSENT} AND p.kind = $4::person_kind
           AND NOT EXISTS (SELECT 1 FROM client_providers cp WHERE cp.provider_id = p.id)
         RETURNING p.id)
       UPDATE people p SET due_at = clock_timestamp(), step = NULL
       FROM forgotten JOIN email_claims released ON released.person_id = forgotten.id
       WHERE p.email_fingerprint = released.fingerprint AND p.error_code = 'email-taken'`,
      [importId, idle.people, idle.rows, kind],
    );
  }
}
