import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { PersonKey, Profile } from '../model/profile.js';
import { ProfileSeal } from '../model/profile.js';
import type { ResolveAction } from '../model/resolve-rule.js';

/** A provider that a client names. */
export interface NamedProvider {
  id: string;
  externalId: string;
}

/** No call of this person is unsettled. */
const NO_ATTEMPT = `attempt_look_up_at = NULL, attempt_call_id = NULL, attempt_operation = NULL, attempt_email = NULL,
  attempt_profile = NULL`;

/** The wanted side of people: what the EHR last said. What is known of the platform is never written here. */
@Injectable()
export class DesiredStateRepository {
  constructor(private readonly seal: ProfileSeal) {}

  /**
   * Wants a person with this profile, in the interactive lane. A fault is forgotten; a review too when the email
   * changed, since its reason did.
   *
   * @returns the person's id
   */
  async wantPerson(tx: PoolClient, key: PersonKey, profile: Profile): Promise<string> {
    const { rows } = await tx.query<{ id: string }>(
      `INSERT INTO people AS p (id, kind, external_id, profile, profile_hash, email_fingerprint, lane)
       VALUES ($1, $2, $3, $4, $5, $6, 'interactive')
       ON CONFLICT (kind, external_id) DO UPDATE SET wanted = true, profile = excluded.profile,
         profile_hash = excluded.profile_hash, email_fingerprint = excluded.email_fingerprint, lane = 'interactive', paused_by_import = NULL,
         fault = NULL, retry_at = NULL, failures = 0, lost_creates = 0, wanted_at = clock_timestamp(),
         review = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint THEN NULL ELSE p.review END,
         checked_absent_at = CASE WHEN p.email_fingerprint IS DISTINCT FROM excluded.email_fingerprint
           THEN NULL ELSE p.checked_absent_at END
       RETURNING id`,
      [
        randomUUID(),
        key.kind,
        key.externalId,
        this.seal.seal(key, profile),
        this.seal.hash(profile),
        this.seal.emailFingerprint(profile.email),
      ],
    );
    const [row] = rows;
    if (!row) throw new Error('A person could not be stored.');
    return row.id;
  }

  /** Wants a person to be gone. */
  async wantAbsence(tx: PoolClient, id: string): Promise<void> {
    await tx.query(
      `UPDATE people SET wanted = false, lane = 'interactive', paused_by_import = NULL, fault = NULL, review = NULL,
         retry_at = NULL, failures = 0, lost_creates = 0, checked_absent_at = NULL, wanted_at = clock_timestamp() WHERE id = $1`,
      [id],
    );
  }

  /**
   * Finds wanted providers by their external ids and keeps them from being deleted until the transaction ends. The lock
   * bears any number of the like and every change but a deletion, which locks for update first.
   */
  async nameProviders(tx: PoolClient, externalIds: string[]): Promise<NamedProvider[]> {
    const { rows } = await tx.query<NamedProvider>(
      `SELECT id, external_id AS "externalId" FROM people
       WHERE kind = 'provider' AND external_id = ANY($1) AND wanted ORDER BY id FOR KEY SHARE`,
      [externalIds],
    );
    return rows;
  }

  /** Replaces a client's wanted list. @param providerIds in their order, the primary first */
  async wantProviders(tx: PoolClient, clientId: string, providerIds: string[]): Promise<void> {
    await tx.query('DELETE FROM client_providers WHERE client_id = $1', [clientId]);
    await tx.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT $1, ordinality - 1, id FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted(id, ordinality)`,
      [clientId, providerIds],
    );
  }

  /** Counts the clients that name a provider and are themselves wanted. */
  async countClientsOf(tx: PoolClient, providerId: string): Promise<number> {
    const { rows } = await tx.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM client_providers cp JOIN people c ON c.id = cp.client_id
       WHERE cp.provider_id = $1 AND c.wanted`,
      [providerId],
    );
    return rows[0]?.count ?? 0;
  }

  /** Settles by a human being's word what the service could not. */
  async resolve(tx: PoolClient, id: string, action: Exclude<ResolveAction, 'link'>): Promise<void> {
    const changes = {
      create: `${NO_ATTEMPT},
        platform_user_id = NULL, role_known = true, providers_known = false, checked_absent_at = NULL, fault = NULL`,
      retry: 'fault = NULL, checked_absent_at = NULL',
      ignore: `attempt_look_up_at = CASE WHEN wanted THEN attempt_look_up_at END,
        attempt_call_id = CASE WHEN wanted THEN attempt_call_id END,
        attempt_operation = CASE WHEN wanted THEN attempt_operation END,
        platform_user_id = CASE WHEN wanted OR role_known OR kind = 'provider' THEN platform_user_id END,
        fault = CASE WHEN wanted THEN 'ignored' END`,
      delete: 'role_known = true',
    };
    await tx.query(
      `UPDATE people SET ${changes[action]}, review = NULL, retry_at = NULL, failures = 0, lost_creates = 0, lane = 'interactive', paused_by_import = NULL WHERE id = $1`,
      [id],
    );
  }

  /** Unlinks a person from a user who was found by the email, and is somebody else. */
  async unlink(tx: PoolClient, id: string): Promise<void> {
    await tx.query(
      `UPDATE people SET platform_user_id = NULL, origin = NULL, applied_profile = NULL, role_known = true,
         providers_known = false, ${NO_ATTEMPT}, checked_absent_at = NULL, fault = NULL,
         review = 'role-mismatch' WHERE id = $1`,
      [id],
    );
  }

  /** The platform told that a person's user is of its kind. */
  async confirmRole(tx: PoolClient, id: string): Promise<void> {
    await tx.query('UPDATE people SET role_known = true WHERE id = $1', [id]);
  }

  /**
   * Links a person to a user of the platform; what the platform lists for it is not known then, nor what it calls it,
   * unless the user is whom a lost create made.
   */
  async link(tx: PoolClient, id: string, platformUserId: string, origin: 'resolved' | 'event'): Promise<void> {
    await tx.query(
      `UPDATE people SET platform_user_id = $2, origin = $3, role_known = true,
         applied_profile = CASE WHEN attempt_operation LIKE 'create%' THEN attempt_profile END,
         given_primary = CASE WHEN attempt_operation LIKE 'create%' THEN given_primary END, providers_known = false, ${NO_ATTEMPT}, checked_absent_at = NULL, review = NULL, fault = NULL,
         retry_at = NULL, failures = 0, lost_creates = 0
       WHERE id = $1`,
      [id, platformUserId, origin],
    );
  }
}
