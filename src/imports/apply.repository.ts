import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { DeletesRepository } from './deletes.repository.js';
import { FAIR_ORDER } from './fair-order.js';
import { ImportsRepository } from './imports.repository.js';
import { namesOneOf } from './names-one-of.js';

/** The rows that change what is wanted of a person, while they are pending. */
const WISHES = `planned IN ('create-or-link', 'provider-change', 'attribute-change', 'needs-review')`;

/**
 * Turns a plan into wishes, set-based and in one transaction: either the whole import is wanted, or nothing of it.
 * The mirror takes it from there.
 */
@Injectable()
export class ApplyRepository {
  constructor(
    private readonly imports: ImportsRepository,
    private readonly deletes: DeletesRepository,
  ) {}

  /** Applies the pending rows of a planned import. */
  async apply(tx: PoolClient, importId: string): Promise<void> {
    if (!(await this.imports.hasPending(tx, importId))) return;
    await this.lockPeople(tx, importId);
    await this.skipChanged(tx, importId);
    await this.skipMissing(tx, importId);
    await this.remember(tx, importId);
    for (const kind of ['provider', 'client']) await this.wantPeople(tx, importId, kind);
    await this.claimEmails(tx, importId);
    await this.wantLists(tx, importId);
    await this.deletes.apply(tx, importId);
    await this.settle(tx, importId);
    await this.imports.analyse(tx);
  }

  private async lockPeople(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `SELECT 1 FROM people p JOIN import_rows r ON r.kind = p.kind AND r.external_id = p.external_id
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND NOT r.applied ORDER BY p.id FOR UPDATE OF p`,
      [importId],
    );
  }

  /** A person that somebody changed since the plan is left alone; one that a cancelled import took back is gone. */
  private async skipChanged(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'changed-since-plan',
         hint = 'This person was taken back after the plan was made: nobody is left to delete.'
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND NOT r.applied AND r.planned = 'delete'
         AND NOT EXISTS (SELECT 1 FROM people p WHERE p.kind = r.kind AND p.external_id = r.external_id)`,
      [importId],
    );
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'changed-since-plan',
         hint = CASE WHEN r.planned = 'delete' THEN 'This person was changed after the plan was made, and is kept.'
           ELSE 'This person was changed after the plan was made: retry to plan it anew.' END
       FROM people p
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND NOT r.applied AND p.kind = r.kind AND p.external_id = r.external_id
         AND p.wanted_at IS DISTINCT FROM r.person_wanted_at`,
      [importId],
    );
  }

  /** A provider who was there when the plan was made may be gone: then its clients' lists would be others than planned. */
  private async skipMissing(tx: PoolClient, importId: string): Promise<void> {
    const { rows } = await tx.query<{ externalId: string }>(
      `SELECT external_id AS "externalId" FROM (
         SELECT unnest(providers) AS external_id FROM import_rows
           WHERE import_id = $1 AND kind = 'client' AND outcome = 'pending' AND NOT applied
         EXCEPT SELECT external_id FROM import_rows
           WHERE import_id = $1 AND kind = 'provider' AND outcome = 'pending' AND planned <> 'delete'
         EXCEPT SELECT external_id FROM people WHERE kind = 'provider' AND wanted) AS gone`,
      [importId],
    );
    if (rows.length === 0) return;
    await tx.query(
      `UPDATE import_rows r SET outcome = 'skipped', code = 'changed-since-plan',
         hint = 'A provider of this client was taken back or deleted after the plan was made: retry to plan it anew.'
       WHERE r.import_id = $1 AND r.kind = 'client' AND r.outcome = 'pending' AND NOT r.applied AND ${namesOneOf('$2')}`,
      [importId, rows.map(({ externalId }) => externalId)],
    );
  }

  /** Keeps what was wanted of the people whom rows are about to change, should the import be cancelled. */
  private async remember(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `UPDATE import_rows r SET was = jsonb_build_object('wanted', p.wanted, 'profile', encode(p.profile, 'base64'),
         'profileHash', encode(p.profile_hash, 'base64'), 'emailFingerprint', encode(p.email_fingerprint, 'base64'),
         'fault', p.fault, 'review', p.review, 'providers', coalesce((
           SELECT jsonb_agg(cp.provider_id ORDER BY cp.position) FROM client_providers cp WHERE cp.client_id = p.id), '[]'))
       FROM people p
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND NOT r.applied AND p.kind = r.kind AND p.external_id = r.external_id`,
      [importId],
    );
  }

  /**
   * The moments, to the microsecond, are those of the insertions: people go in the order in which they are inserted here,
   * and clients who wait meanwhile come back into it (`WakesRepository.clientsOf`).
   */
  private async wantPeople(tx: PoolClient, importId: string, kind: string): Promise<void> {
    await tx.query(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, lane, state,
         wanted_at, due_at)
       SELECT gen_random_uuid(), kind, external_id, profile, profile_hash, email_fingerprint, 'bulk', 'pending',
         clock_timestamp(), clock_timestamp()
       FROM import_rows WHERE import_id = $1 AND kind = $2::person_kind AND outcome = 'pending' AND NOT applied AND ${WISHES}
       ORDER BY ${FAIR_ORDER}
       ON CONFLICT (kind, external_id) DO UPDATE SET wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash, email_fingerprint = excluded.email_fingerprint,
         fault = NULL, retry_at = NULL, strikes = 0, wanted_at = excluded.wanted_at, held_by = NULL,
         lane = CASE WHEN p.due_at IS NULL THEN 'bulk' ELSE p.lane END,
         review = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint THEN NULL ELSE p.review END,
         checked_absent_at = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint
           THEN NULL ELSE p.checked_absent_at END,
         state = 'pending', step = NULL, due_at = excluded.due_at, updated_at = clock_timestamp()`,
      [importId, kind],
    );
    await tx.query(
      `UPDATE import_rows r SET person_id = p.id, person_wanted_at = p.wanted_at FROM people p
       WHERE r.import_id = $1 AND r.kind = $2::person_kind AND r.outcome = 'pending' AND NOT r.applied AND r.planned <> 'delete'
         AND p.kind = r.kind AND p.external_id = r.external_id`,
      [importId, kind],
    );
  }

  /** Of several new people with one email the first row's gets it, as the plan says, whoever is looked at first. */
  private async claimEmails(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `INSERT INTO email_claims (fingerprint, person_id)
       SELECT p.email_fingerprint, p.id FROM import_rows r JOIN people p ON p.id = r.person_id
       WHERE r.import_id = $1 AND r.outcome = 'pending' AND r.planned = 'create-or-link'
         AND p.email_fingerprint IS NOT NULL AND p.platform_user_id IS NULL
       ORDER BY r.row_no ON CONFLICT (fingerprint) DO NOTHING`,
      [importId],
    );
  }

  /** Replaces the wanted lists; a client whose providers are not mirrored yet waits at once, as `nextStep` would say. */
  private async wantLists(tx: PoolClient, importId: string): Promise<void> {
    const rows = `SELECT person_id, providers FROM import_rows
      WHERE import_id = $1 AND kind = 'client' AND outcome = 'pending' AND NOT applied AND ${WISHES}`;
    await tx.query(`DELETE FROM client_providers WHERE client_id IN (SELECT person_id FROM (${rows}) AS r)`, [
      importId,
    ]);
    await tx.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT r.person_id, named.position - 1, q.id
       FROM (${rows}) AS r CROSS JOIN unnest(r.providers) WITH ORDINALITY AS named(external_id, position)
       JOIN people q ON q.kind = 'provider' AND q.external_id = named.external_id
       ON CONFLICT (client_id, provider_id) DO NOTHING`,
      [importId],
    );
    await tx.query(
      `UPDATE people p SET state = 'waiting', error_code = 'provider-not-mirrored', due_at = NULL
       WHERE p.id IN (SELECT person_id FROM (${rows}) AS r) AND p.email_fingerprint IS NULL AND p.attempt_look_up_at IS NULL
         AND p.review IS NULL AND EXISTS (SELECT 1 FROM client_providers cp JOIN people q ON q.id = cp.provider_id
           WHERE cp.client_id = p.id AND (q.platform_user_id IS NULL OR NOT q.wanted))`,
      [importId],
    );
  }

  /** A changed name or email of somebody who is mirrored takes no call: the platform shows no operation for it. */
  private async settle(tx: PoolClient, importId: string): Promise<void> {
    await tx.query(
      `UPDATE import_rows SET outcome = 'updated', code = 'not-pushable',
         hint = 'The change is kept here; the platform has no operation that changes a name or an email.'
       WHERE import_id = $1 AND outcome = 'pending' AND planned = 'attribute-change'`,
      [importId],
    );
    await tx.query(
      `UPDATE import_rows SET applied = true WHERE import_id = $1 AND outcome IN ('pending', 'updated') AND NOT applied`,
      [importId],
    );
  }
}
