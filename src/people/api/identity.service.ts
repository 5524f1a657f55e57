import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService, type Tx, toBytes } from '../../database/prisma.service.js';
import { isUniqueViolation } from '../../errors/error-code.js';
import { Feed } from '../../feed/feed.js';
import { Problem } from '../../http/problem/problem.js';
import { checkMerge, withUsersOf } from '../rules/merge-rule.js';
import { type PersonKey, ProfileSeal } from '../rules/profile.js';
import { DependentsRepository } from '../store/dependents.repository.js';
import { FormerIdsRepository, type Successor } from '../store/former-ids.repository.js';
import { awaitRetention } from '../store/legal-hold.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { PeopleService } from './people.service.js';
import type { PersonResponse } from './person-view.js';

/** Renames people, and merges clients. */
@Injectable()
export class IdentityService {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly dependents: DependentsRepository,
    private readonly views: PeopleService,
    private readonly formerIds: FormerIdsRepository,
    private readonly seal: ProfileSeal,
    private readonly feed: Feed,
    private readonly audit: Audit,
  ) {}

  /**
   * Gives a person another id. The former one means this person from then on.
   *
   * @throws {Problem} 404; 409 `id-taken`; 409 `renamed` or `merged` unless this rename is done already
   */
  async rename({ kind, externalId }: PersonKey, newId: string): Promise<PersonResponse> {
    const taken = new Problem('id-taken', 'This id is or was in use. Choose one that never was.', {
      pointer: '/externalId',
    });
    const change = this.change(async (tx) => {
      const row = await this.people.lock(tx, { kind, externalId });
      if (!row) {
        const former = await this.formerOf(tx, { kind, externalId });
        if (former?.code !== 'renamed' || former.current !== newId) await this.formerIds.refuse(kind, [externalId], tx);
        return former?.id ?? this.views.unknown(kind);
      }
      if (newId === externalId) return row.id;
      await tx.person.deleteMany({ where: { kind, externalId: newId, wantedVersion: 0 } }); // only deleted, never used
      await this.formerIds.rename(tx, row, newId);
      // After the write, which waits for a rename or merge that gives the id up.
      if (await this.formerOf(tx, { kind, externalId: newId })) throw taken;
      await this.announce(tx, 'person.renamed', row.id, externalId);
      return row.id;
    });
    return change.catch((error: unknown) => {
      throw isUniqueViolation(error) ? taken : error;
    });
  }

  /**
   * Merges a client into another one, which takes over its platform users with their sessions, its ids and its legal
   * hold. What the EHR stated about the merged client is gone, so this cannot be undone.
   *
   * @throws {Problem} 404; 409 as `checkMerge`; 409 `renamed` or `merged` unless this merge is done already; 422
   *   `unknown-client` or `same-client`
   */
  async merge(externalId: string, into: string): Promise<PersonResponse> {
    if (externalId === into)
      throw new Problem('same-client', 'A client cannot be merged into itself.', { pointer: '/into' });
    return this.change(async (tx) => {
      const [client, survivor] = await this.lockBoth(tx, externalId, into);
      await this.formerIds.refuse('client', [into], tx, () => '/into');
      if (!survivor?.person.wanted) {
        const detail = 'The client is unknown or deleted. Correct the id.';
        throw new Problem('unknown-client', detail, { pointer: '/into' });
      }
      if (!client) {
        const former = await this.formerOf(tx, { kind: 'client', externalId });
        if (former?.code !== 'merged' || former.id !== survivor.id)
          await this.formerIds.refuse('client', [externalId], tx);
        return former?.id ?? this.views.unknown('client');
      }
      checkMerge(client.person, survivor.person, await this.isSessionRequested(tx, client, survivor));
      await this.absorb(tx, client, survivor);
      await this.announce(tx, 'person.merged', survivor.id, externalId);
      return survivor.id;
    });
  }

  /** Moves everything of a client to its survivor, and removes its row. */
  private async absorb(tx: Tx, client: PersonRow, survivor: PersonRow): Promise<void> {
    const heldAt = [client.heldAt, survivor.heldAt].filter((at) => at !== null).sort(byTime)[0] ?? null;
    if (heldAt !== null) await awaitRetention(tx);
    const own = { where: { personId: client.id }, data: { personId: survivor.id } };
    await tx.platformUser.updateMany(own);
    await tx.platformCall.updateMany(own);
    await this.formerIds.merge(tx, client, survivor.id);
    await this.dependents.releaseAllClaims(tx, [client.id]);
    await tx.person.delete({ where: { id: client.id } });
    const { email } = survivor.person;
    if (email !== null && client.emailClaims.includes(email)) survivor.context.claim = 'free';
    const person = withUsersOf(survivor.person, client.person);
    const isTakenOver = person.platformUserId !== survivor.platformUserId;
    const appliedProfile = isTakenOver && client.appliedProfile;
    await this.people.update(tx, survivor, person, {
      ...{ heldAt, newByImport: null },
      ...(appliedProfile && {
        appliedProfile: toBytes(this.seal.seal(survivor, this.seal.open(client, appliedProfile))),
      }),
    });
  }

  /** True if the EHR requested a session of one of the clients that is not settled. */
  private async isSessionRequested(tx: Tx, ...clients: PersonRow[]): Promise<boolean> {
    const users: string[] = [];
    for (const client of clients) users.push(...(await this.formerIds.users(client, tx)));
    const where = { everClientUserIds: { hasSome: users }, state: { in: ['Requested', 'Unknown'] } };
    return (await tx.session.findFirst({ where, select: { id: true } })) !== null;
  }

  private async change(work: (tx: Tx) => Promise<string>): Promise<PersonResponse> {
    return this.prisma.transaction(async (tx) => this.views.stored(tx, await this.people.mustLock(tx, await work(tx))));
  }

  private async formerOf(tx: Tx, { kind, externalId }: PersonKey): Promise<Successor | undefined> {
    return (await this.formerIds.find(kind, [externalId], tx)).get(externalId);
  }

  /** Locks two clients in a fixed order, because two merges may name them the other way round. */
  private async lockBoth(tx: Tx, ...externalIds: [string, string]) {
    const locked = await tx.$queryRaw<{ id: string }[]>`
      SELECT id FROM people WHERE kind = 'client' AND wanted_version > 0 AND external_id = ANY (${externalIds}::text[])
      ORDER BY id FOR UPDATE`;
    const ids = locked.map(({ id }) => id);
    const rows = await this.people.lockAll(tx, ids);
    return externalIds.map((id) => rows.find(({ externalId }) => externalId === id));
  }

  private async announce(tx: Tx, type: 'person.renamed' | 'person.merged', id: string, formerExternalId: string) {
    const { kind, externalId, platformUserId }: PersonRow = await this.people.mustLock(tx, id);
    this.audit.about(kind, externalId, formerExternalId);
    await this.feed.append(tx, {
      type,
      subject: `${kind}s/${encodeURIComponent(externalId)}`,
      data: { kind, externalId, formerExternalId, platformUserId },
    });
  }
}

const byTime = (one: Date, other: Date): number => one.getTime() - other.getTime();
