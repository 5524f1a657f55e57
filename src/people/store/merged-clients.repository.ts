import { Injectable } from '@nestjs/common';
import { type Tx, toBytes } from '../../database/prisma.service.js';
import { ProfileSeal } from '../rules/profile.js';
import { giveBack, type MergedUser, takeOver } from '../rules/rename-rule.js';
import type { DataSubject, ErasedCopies } from './client-data.js';
import { DependentsRepository } from './dependents.repository.js';
import { type MoreFields, PeopleRepository } from './people.repository.js';
import type { PersonRow } from './person-row.js';
import { PlatformUsersRepository } from './platform-users.repository.js';

/**
 * The fields of a merged client: it is never due, and no answer to an earlier call is stored. Its user is not on
 * its row, so that no decision can delete it.
 */
const NO_FURTHER_CALL = {
  ...{ wanted: false, platformUserId: null, state: 'deleted', step: null, dueAt: null, urgent: false },
  ...{ callId: null, callOperation: null, callVersion: null, callLookUpAt: null },
  ...{ errorCode: null, errorText: null, fault: null, review: null, failures: 0, checkedAbsentAt: null },
  ...{ wantedVersion: { increment: 1 } },
} as const;

/** Columns of a person that loses its user. */
const WITHOUT_USER: MoreFields = { origin: null, appliedProfile: null, inviteUrl: null };

/** The platform users of merged clients: taken over, kept, deleted or given back. People are locked by the caller. */
@Injectable()
export class MergedClientsRepository {
  constructor(
    private readonly people: PeopleRepository,
    private readonly users: PlatformUsersRepository,
    private readonly dependents: DependentsRepository,
    private readonly seal: ProfileSeal,
  ) {}

  /** True if the EHR requested a session of these users that is not settled. */
  async isSessionRequested(tx: Tx, userIds: string[]): Promise<boolean> {
    const where = { clientUserIds: { hasSome: userIds }, state: { in: ['Requested', 'Unknown'] } };
    return (await tx.session.findFirst({ where, select: { id: true } })) !== null;
  }

  /**
   * Leaves a merged client without a next step, and moves its user.
   *
   * @param survivor the client that it was merged into
   */
  async store(tx: Tx, client: PersonRow, survivor: PersonRow, user: MergedUser): Promise<void> {
    const { now } = survivor.context;
    await tx.person.update({
      where: { id: client.id },
      data: { ...NO_FURTHER_CALL, wantedAt: now, statedAt: now, updatedAt: now },
    });
    if (user === 'none') await this.dependents.releaseClaims(tx, [{ id: client.id, emails: client.emailClaims }]);
    else if (user === 'taken-over') await this.takeOver(tx, client, survivor);
    else await this.users.keep(tx, client.person.platformUserId ?? '', client);
    if (user === 'deleted') await this.delete(tx, client.id);
  }

  private async takeOver(tx: Tx, client: PersonRow, survivor: PersonRow): Promise<void> {
    await tx.emailClaim.updateMany({ where: { personId: client.id }, data: { personId: survivor.id } });
    const { appliedProfile, inviteUrl } = client;
    const { seal } = this;
    await this.people.update(tx, survivor, takeOver(survivor.person, client.person), {
      appliedProfile: appliedProfile && toBytes(seal.seal(survivor, seal.open(client, appliedProfile))),
      inviteUrl:
        inviteUrl && toBytes(seal.sealText(survivor, 'invite_url', seal.openText(client, 'invite_url', inviteUrl))),
    });
  }

  /** Deletes the kept user of a merged client through the reconciler, and erases the client's names. */
  async delete(tx: Tx, id: string): Promise<void> {
    const kept = await this.users.release(tx, id);
    if (kept !== undefined) await tx.person.update({ where: { id }, data: { platformUserId: kept } });
    const row = await this.people.mustLock(tx, id);
    await this.people.wantAbsence(tx, row);
    const erased = await this.people.mustLock(tx, id);
    await this.people.update(tx, erased, erased.person);
  }

  /** Deletes the kept users of all clients that were merged into a deleted one. */
  async erase(tx: Tx, { people }: DataSubject): Promise<ErasedCopies> {
    let rows = 0;
    for (const id of people) {
      const row = await this.people.mustLock(tx, id);
      if (row.mergedInto === null || this.people.isErased(row)) continue;
      await this.delete(tx, id);
      rows++;
    }
    return { rows };
  }

  /**
   * Finds the platform user of a merged client: kept for a client of its family, taken over by the survivor, given
   * back to another client, or lost.
   */
  async placeOf(tx: Tx, userId: string, survivor: PersonRow): Promise<'kept' | 'taken-over' | 'elsewhere' | 'lost'> {
    if (survivor.person.platformUserId === userId) return 'taken-over';
    if (await this.users.isKept(tx, userId)) return 'kept';
    const holder = await this.people.find({ platformUserId: userId }, tx);
    return holder?.wanted ? 'elsewhere' : 'lost';
  }

  /** Restores a client after its merge was undone. @param userId the user to give back; null if none */
  async restore(tx: Tx, client: PersonRow, survivor: PersonRow, userId: string | null): Promise<void> {
    if (userId !== null && survivor.person.platformUserId === userId) {
      const { email } = client.profile ? this.seal.open(client, client.profile) : { email: null };
      const fingerprint = this.seal.emailFingerprint(email);
      const claim = fingerprint && { personId: survivor.id, fingerprint: toBytes(fingerprint) };
      if (claim) await tx.emailClaim.updateMany({ where: claim, data: { personId: client.id } });
      await this.people.update(tx, survivor, giveBack(survivor.person), WITHOUT_USER);
      await tx.person.update({ where: { id: client.id }, data: { providersKnown: false, unsettledCall: null } });
    } else if (userId !== null) await this.users.releaseUser(tx, userId);
    await this.keepProviders(tx, client.id, survivor.id);
    const { now } = survivor.context;
    const wanted = { wanted: true, state: 'pending', urgent: true, wantedVersion: { increment: 1 } };
    await tx.person.update({
      where: { id: client.id },
      data: { ...wanted, platformUserId: userId, wantedAt: now, statedAt: now },
    });
    const restored = await this.people.mustLock(tx, client.id);
    await this.people.update(tx, restored, restored.person, userId === null ? WITHOUT_USER : {});
  }

  /** Drops the providers deleted since the merge; without any left, the survivor's are used. */
  private async keepProviders(tx: Tx, id: string, survivorId: string): Promise<void> {
    await tx.clientProvider.deleteMany({ where: { clientId: id, provider: { wanted: false } } });
    if ((await tx.clientProvider.findFirst({ where: { clientId: id } })) !== null) return;
    const listed = await tx.clientProvider.findMany({ where: { clientId: survivorId } });
    await tx.clientProvider.createMany({ data: listed.map((item) => ({ ...item, clientId: id })) });
  }
}
