import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { ProfileSeal } from '../model/profile.js';
import { giveBack, type MergedUser, takeOver } from '../model/rename-rule.js';
import type { DataSubject, ErasedCopies } from './client-data.js';
import { DependentsRepository } from './dependents.repository.js';
import { type MoreFields, PeopleRepository } from './people.repository.js';
import type { PersonRow } from './person-row.js';
import { PlatformUsersRepository } from './platform-users.repository.js';

/**
 * SQL assignments for a merged client: it is never due, and no answer to an earlier call is stored. Its user is not on
 * its row, so that no decision can delete it.
 */
const NO_FURTHER_CALL = `wanted = false, platform_user_id = NULL, state = 'deleted', step = NULL, due_at = NULL,
  error_code = NULL, error_text = NULL, fault = NULL, review = NULL, retry_at = NULL, failures = 0,
  checked_absent_at = NULL, lane = 'bulk', lease_owner = NULL, wanted_at = clock_timestamp(),
  stated_at = clock_timestamp(), updated_at = clock_timestamp()`;

/** Columns of a person that loses its user. */
const WITHOUT_USER: MoreFields = { origin: null, appliedProfile: null, inviteUrl: null, leaseOwner: null };

/** The platform users of merged clients: taken over, kept, deleted or given back. People are locked by the caller. */
@Injectable()
export class MergedClientsRepository {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly users: PlatformUsersRepository,
    private readonly dependents: DependentsRepository,
    private readonly seal: ProfileSeal,
  ) {}

  /** True if the EHR requested a session of these users that is not settled. */
  async isSessionRequested(tx: PoolClient, userIds: readonly string[]): Promise<boolean> {
    const { rowCount } = await tx.query(
      `SELECT FROM sessions WHERE client_user_ids && $1::text[] AND state IN ('Requested', 'Unknown') LIMIT 1`,
      [userIds],
    );
    return rowCount !== 0;
  }

  /**
   * Leaves a merged client without a next step, and moves its user.
   *
   * @param survivor the client that it was merged into
   */
  async store(tx: PoolClient, client: PersonRow, survivor: PersonRow, user: MergedUser): Promise<void> {
    await tx.query(`UPDATE people SET ${NO_FURTHER_CALL} WHERE id = $1`, [client.id]);
    if (user === 'none') await this.dependents.releaseClaims(await this.prisma.in(tx), client.id, []);
    else if (user === 'taken-over') await this.takeOver(tx, client, survivor);
    else await this.users.keep(tx, client.person.platformUserId ?? '', client);
    if (user === 'deleted') await this.delete(tx, client.id);
  }

  private async takeOver(tx: PoolClient, client: PersonRow, survivor: PersonRow): Promise<void> {
    await tx.query('UPDATE email_claims SET person_id = $2 WHERE person_id = $1', [client.id, survivor.id]);
    const { appliedProfile, inviteUrl } = client;
    const { seal } = this;
    await this.people.update(tx, survivor, takeOver(survivor.person, client.person), {
      leaseOwner: null,
      appliedProfile: appliedProfile && seal.seal(survivor, seal.open(client, appliedProfile)),
      inviteUrl: inviteUrl && seal.sealText(survivor, 'invite_url', seal.openText(client, 'invite_url', inviteUrl)),
    });
  }

  /** Deletes the kept user of a merged client through the reconciler, and erases the client's names. */
  async delete(tx: PoolClient, id: string): Promise<void> {
    const kept = await this.users.release(tx, id);
    if (kept !== undefined) await tx.query('UPDATE people SET platform_user_id = $2 WHERE id = $1', [id, kept]);
    const row = await this.people.mustLock(tx, id);
    await this.people.wantAbsence(tx, row);
    const erased = await this.people.mustLock(tx, id);
    await this.people.update(tx, erased, erased.person);
  }

  /** Deletes the kept users of all clients that were merged into a deleted one. */
  async erase(tx: Tx, { people }: DataSubject): Promise<ErasedCopies> {
    const sql = this.prisma.sql(tx);
    let rows = 0;
    for (const id of people) {
      const row = await this.people.mustLock(sql, id);
      if (row.mergedInto === null || this.people.isErased(row)) continue;
      await this.delete(sql, id);
      rows++;
    }
    return { rows };
  }

  /**
   * Finds the platform user of a merged client: kept for a client of its family, taken over by the survivor, given
   * back to another client, or lost.
   */
  async placeOf(
    tx: PoolClient,
    userId: string,
    survivor: PersonRow,
  ): Promise<'kept' | 'taken-over' | 'elsewhere' | 'lost'> {
    if (survivor.person.platformUserId === userId) return 'taken-over';
    if (await this.users.isKept(tx, userId)) return 'kept';
    const holder = await this.people.find({ platformUserId: userId }, tx);
    return holder?.wanted ? 'elsewhere' : 'lost';
  }

  /** Restores a client after its merge was undone. @param userId the user to give back; null if none */
  async restore(tx: PoolClient, client: PersonRow, survivor: PersonRow, userId: string | null): Promise<void> {
    if (userId !== null && survivor.person.platformUserId === userId) {
      const { email } = client.profile ? this.seal.open(client, client.profile) : { email: null };
      await tx.query(
        'UPDATE email_claims SET person_id = $1 WHERE person_id = $2 AND fingerprint = ANY ($3::bytea[])',
        [client.id, survivor.id, email === null ? [] : this.seal.emailFingerprints(email)],
      );
      await this.people.update(tx, survivor, giveBack(survivor.person), WITHOUT_USER);
      await tx.query('UPDATE people SET providers_known = false, attempt_call_id = NULL WHERE id = $1', [client.id]);
    } else if (userId !== null) await this.users.releaseUser(tx, userId);
    await this.keepProviders(tx, client.id, survivor.id);
    await tx.query(
      `UPDATE people SET wanted = true, platform_user_id = $2, state = 'pending', lane = 'interactive',
         wanted_at = clock_timestamp(), stated_at = clock_timestamp() WHERE id = $1`,
      [client.id, userId],
    );
    const restored = await this.people.mustLock(tx, client.id);
    await this.people.update(tx, restored, restored.person, userId === null ? WITHOUT_USER : {});
  }

  /** Drops the providers deleted since the merge; without any left, the survivor's are used. */
  private async keepProviders(tx: PoolClient, id: string, survivorId: string): Promise<void> {
    await tx.query(
      `DELETE FROM client_providers cp USING people q WHERE cp.client_id = $1 AND q.id = cp.provider_id AND NOT q.wanted`,
      [id],
    );
    await tx.query(
      `INSERT INTO client_providers (client_id, position, provider_id)
       SELECT $1, position, provider_id FROM client_providers WHERE client_id = $2
         AND NOT EXISTS (SELECT FROM client_providers WHERE client_id = $1)`,
      [id, survivorId],
    );
  }
}
