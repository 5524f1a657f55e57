import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { isUniqueViolation } from '../../errors/error-code.js';
import { Feed } from '../../feed/feed.js';
import { type FeedType } from '../../feed/feed-types.js';
import { Problem } from '../../http/problem/problem.js';
import type { PersonKey } from '../rules/profile.js';
import { checkMerge, merged, mergedUser, renamed, unmerged } from '../rules/rename-rule.js';
import { FormerIdsRepository, type Successor } from '../store/former-ids.repository.js';
import { MergedClientsRepository } from '../store/merged-clients.repository.js';
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
    private readonly views: PeopleService,
    private readonly formerIds: FormerIdsRepository,
    private readonly clients: MergedClientsRepository,
    private readonly feed: Feed,
    private readonly audit: Audit,
  ) {}

  /**
   * Gives a person another id.
   *
   * @throws {Problem} 404; 409 `id-taken`; 409 `renamed` or `merged` unless this rename is done already
   */
  async rename({ kind, externalId }: PersonKey, newId: string): Promise<PersonResponse> {
    const taken = new Problem('id-taken', 'This id is or was in use. Choose one that never was.', {
      pointer: '/externalId',
    });
    const change = this.change(async (tx) => {
      const row = await this.people.lock(tx, { kind, externalId });
      if (!row || row.mergedInto !== null) {
        const former = await this.formerOf(tx, { kind, externalId });
        if (former?.code !== 'renamed' || former.current !== newId) await this.formerIds.refuse(kind, [externalId], tx);
        return former?.id ?? this.views.unknown(kind);
      }
      if (newId === externalId) return row.id;
      await tx.person.deleteMany({ where: { kind, externalId: newId, wantedVersion: 0 } }); // only deleted, never used
      if (await this.formerIds.isUsed(tx, kind, newId)) throw taken;
      const family = await this.formerIds.identities(tx, await this.formerIds.family(tx, kind, externalId));
      await this.formerIds.save(tx, kind, renamed(family, row.id, newId));
      this.audit.about(kind, externalId, newId);
      await this.announce(tx, 'person.renamed', row.id, externalId);
      return row.id;
    });
    return change.catch((error: unknown) => {
      throw isUniqueViolation(error) ? taken : error; // another request used the id at the same moment
    });
  }

  /**
   * Merges a client into another one, which then shows the sessions of both.
   *
   * @throws {Problem} 404; 409 as `checkMerge`; 409 `renamed` or `merged` unless this merge is done already; 422
   *   `unknown-client` or `same-client`
   */
  async merge(externalId: string, into: string, deletePlatformUser: boolean): Promise<PersonResponse> {
    if (externalId === into)
      throw new Problem('same-client', 'A client cannot be merged into itself.', { pointer: '/into' });
    return this.change(async (tx) => {
      const [client, survivor] = await this.lockBoth(tx, externalId, into);
      await this.formerIds.refuse('client', [into], tx, () => '/into');
      if (!survivor?.person.wanted) throw unknownClient('/into');
      const former = await this.formerOf(tx, { kind: 'client', externalId });
      if (former) {
        if (former.code !== 'merged' || former.id !== survivor.id)
          await this.formerIds.refuse('client', [externalId], tx);
        if (deletePlatformUser) await this.deleteKept(tx, former.personId);
        return survivor.id;
      }
      if (!client) return this.views.unknown('client');
      checkMerge(client.person, await this.clients.isSessionRequested(tx, await this.formerIds.users(client, tx)));
      const user = mergedUser(client.person, survivor.person, deletePlatformUser);
      const families = [
        await this.formerIds.family(tx, 'client', externalId),
        await this.formerIds.family(tx, 'client', into),
      ];
      const people = families.flatMap((family) => family.people);
      const before = await this.formerIds.identities(tx, { people });
      const after = merged(before, client.id, survivor.id, client.person.platformUserId);
      await this.formerIds.save(tx, 'client', after);
      await spreadHold(tx, people);
      await this.clients.store(tx, { ...client, mergedInto: survivor.id }, survivor, user);
      this.audit.about('client', externalId, into);
      await this.announce(tx, 'person.merged', survivor.id, externalId, { platformUser: user });
      return survivor.id;
    });
  }

  /**
   * Undoes a merge. A client that is not merged is shown, because this may repeat an undo that is done.
   *
   * @param externalId the survivor
   * @param mergedId the client to restore
   * @throws {Problem} 404; 409 `client-deleted` or `account-deleted`; 409 `merged` into another client; 422
   */
  async unmerge(externalId: string, mergedId: string): Promise<PersonResponse> {
    return this.change(async (tx) => {
      const survivor = await this.people.lock(tx, { kind: 'client', externalId });
      await this.formerIds.refuse('client', [externalId], tx);
      if (!survivor) return this.views.unknown('client');
      const former = await this.formerOf(tx, { kind: 'client', externalId: mergedId });
      if (!former) {
        const current = await this.people.find({ kind: 'client', externalId: mergedId }, tx);
        return current?.id ?? fail(unknownClient('/externalId'));
      }
      if (former.code !== 'merged' || former.id !== survivor.id)
        await this.formerIds.refuse('client', [mergedId], tx, () => '/externalId');
      if (!survivor.person.wanted) throw new Problem('client-deleted', 'This client was deleted. PUT it again first.');
      const client = await this.people.mustLock(tx, former.personId);
      const before = await this.formerIds.identities(tx, await this.formerIds.family(tx, 'client', externalId));
      const own = before.formerIds.find(({ personId, intoId }) => personId === client.id && intoId !== null);
      const userId = own?.userId ?? null;
      const place = userId === null ? 'elsewhere' : await this.clients.placeOf(tx, userId, survivor);
      if (place === 'lost' || this.people.isErased(client)) {
        const detail = 'This client or its platform user was deleted, so the merge cannot be undone.';
        throw new Problem('account-deleted', detail, { pointer: '/externalId' });
      }
      await this.formerIds.save(tx, 'client', unmerged(before, client.id));
      await this.clients.restore(tx, client, survivor, place === 'elsewhere' ? null : userId);
      this.audit.about('client', externalId);
      await this.announce(tx, 'person.unmerged', client.id, externalId);
      return client.id;
    });
  }

  private async change(work: (tx: Tx) => Promise<string>): Promise<PersonResponse> {
    return this.prisma.transaction(async (tx) => {
      const changed = this.views.view(await this.people.mustLock(tx, await work(tx)));
      await this.audit.store(tx);
      return changed;
    });
  }

  private async formerOf(tx: Tx, { kind, externalId }: PersonKey): Promise<Successor | undefined> {
    return (await this.formerIds.find(kind, [externalId], tx)).get(externalId);
  }

  /** Locks two clients in a fixed order, because two merges may name them the other way round. */
  private async lockBoth(tx: Tx, ...externalIds: [string, string]) {
    await tx.$queryRaw`
      SELECT FROM people WHERE kind = 'client' AND external_id = ANY (${externalIds}::text[]) ORDER BY id FOR UPDATE`;
    const find = (externalId: string) => this.people.find({ kind: 'client', externalId }, tx);
    return [await find(externalIds[0]), await find(externalIds[1])] as const;
  }

  private async deleteKept(tx: Tx, id: string): Promise<void> {
    const row = await this.people.mustLock(tx, id);
    if (!this.people.isErased(row) && row.state === 'deleted') await this.clients.delete(tx, id);
  }

  private async announce(
    tx: Tx,
    type: FeedType,
    id: string,
    otherId: string,
    more: Record<string, string> = {},
  ): Promise<void> {
    const { kind, externalId, platformUserId }: PersonRow = await this.people.mustLock(tx, id);
    const other = type === 'person.unmerged' ? 'survivorExternalId' : 'formerExternalId';
    await this.feed.append(tx, {
      type,
      subject: `${kind}s/${encodeURIComponent(externalId)}`,
      data: { kind, externalId, [other]: otherId, platformUserId, ...more },
    });
  }
}

/** A legal hold on one of the merged clients covers all of them, also after the merge was undone. */
async function spreadHold(tx: Tx, ids: readonly string[]): Promise<void> {
  await tx.$executeRaw`
    UPDATE people SET held_at = held.since
    FROM (SELECT min(held_at) AS since FROM people WHERE id = ANY (${[...ids]}::uuid[])) AS held
    WHERE id = ANY (${[...ids]}::uuid[]) AND held.since IS NOT NULL`;
}

function unknownClient(pointer: string): Problem {
  return new Problem('unknown-client', 'The client is unknown or deleted. Correct the id.', { pointer });
}

function fail(problem: Problem): never {
  throw problem;
}
