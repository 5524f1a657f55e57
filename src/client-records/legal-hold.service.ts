import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { PeopleService } from '../people/api/people.service.js';
import type { PersonResponse } from '../people/api/person-view.js';
import { FormerIdsRepository } from '../people/store/former-ids.repository.js';
import { awaitRetention } from '../people/store/legal-hold.js';
import { PeopleRepository } from '../people/store/people.repository.js';

/** Legal holds: nothing about a held client, or about clients merged with it, is removed here or on the platform. */
@Injectable()
export class LegalHolds {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly formerIds: FormerIdsRepository,
    private readonly views: PeopleService,
    private readonly audit: Audit,
  ) {}

  /** @param reason an id or a code, for the audit log @throws {Problem} 404; 409 `renamed` or `merged` */
  async set(externalId: string, reason: string): Promise<PersonResponse> {
    return this.change(externalId, `held for ${reason}`, async (tx, ids) => {
      await awaitRetention(tx);
      await tx.$executeRaw`
        UPDATE people SET held_at = coalesce(held_at, clock_timestamp()) WHERE id = ANY (${ids}::uuid[])`;
      for (const id of ids) {
        const row = await this.people.mustLock(tx, id);
        if (!row.wanted && row.state !== 'deleted') await this.people.update(tx, row, row.person);
      }
    });
  }

  /** Releases a hold. A deletion that it deferred follows now. @throws {Problem} as `set` */
  async release(externalId: string): Promise<PersonResponse> {
    return this.change(externalId, 'released', async (tx, ids) => {
      const { count } = await tx.person.updateMany({
        where: { id: { in: ids }, heldAt: { not: null } },
        data: { heldAt: null },
      });
      for (const id of count === 0 ? [] : ids) {
        const row = await this.people.mustLock(tx, id);
        // The names of a merged client stay with its survivor, unless its own account must be deleted.
        if (row.wanted || (row.mergedInto !== null && row.state === 'deleted')) continue;
        // An import's deletion is erased when it is sent, so that a cancel can take it back until then.
        if (row.importId === null || this.people.isErased(row)) await this.people.wantAbsence(tx, row, 'released');
        const erased = await this.people.mustLock(tx, id);
        await this.people.update(tx, erased, erased.person);
      }
    });
  }

  /** @param work gets the client first, then those that were merged into it */
  private async change(
    externalId: string,
    outcome: string,
    work: (tx: Tx, ids: string[]) => Promise<void>,
  ): Promise<PersonResponse> {
    const key = { kind: 'client', externalId } as const;
    return this.prisma.transaction(async (tx) => {
      const { id } = await this.views.found(key, await this.people.lock(tx, key), tx);
      const { people } = await this.formerIds.family(tx, key.kind, externalId);
      await work(tx, [id, ...people.filter((one) => one !== id)]);
      const changed = this.views.view(await this.people.mustLock(tx, id));
      await this.audit.store(tx, outcome);
      return changed;
    });
  }
}
