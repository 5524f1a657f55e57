import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import type { PersonKey, Profile } from '../model/profile.js';
import { ProfileSeal } from '../model/profile.js';

/** The desired state of people: what the EHR last said. What is known of the platform is never written here. */
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
   *
   * @returns their ids by external id
   */
  async nameProviders(tx: PoolClient, externalIds: string[]): Promise<Map<string, string>> {
    const { rows } = await tx.query<{ id: string; external_id: string }>(
      `SELECT id, external_id FROM people
       WHERE kind = 'provider' AND external_id = ANY($1) AND wanted ORDER BY id FOR KEY SHARE`,
      [externalIds],
    );
    return new Map(rows.map((row) => [row.external_id, row.id]));
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
}
