import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { PeopleService } from '../people/api/people.service.js';
import type { PersonResponse } from '../people/api/person-view.js';
import { awaitRetention } from '../people/store/legal-hold.js';
import { PeopleRepository } from '../people/store/people.repository.js';
import type { PersonRow } from '../people/store/person-row.js';

/** Legal holds: nothing about a held client is removed here or on the platform. */
@Injectable()
export class LegalHolds {
  constructor(
    private readonly prisma: PrismaService,
    private readonly people: PeopleRepository,
    private readonly views: PeopleService,
  ) {}

  /** @param reason an id or a code, for the audit log @throws {Problem} 404; 409 `renamed` or `merged` */
  async set(externalId: string, reason: string): Promise<PersonResponse> {
    return this.change(externalId, `held for ${reason}`, async (tx, row) => {
      await awaitRetention(tx);
      await tx.$executeRaw`
        UPDATE people SET held_at = coalesce(held_at, clock_timestamp()) WHERE id = ${row.id}::uuid`;
      if (!row.wanted && row.state !== 'deleted') await this.decide(tx, row.id);
    });
  }

  /** Releases a hold. A deletion that it deferred follows now. @throws {Problem} as `set` */
  async release(externalId: string): Promise<PersonResponse> {
    return this.change(externalId, 'released', async (tx, { id, heldAt }) => {
      if (heldAt === null) return;
      await tx.person.update({ where: { id }, data: { heldAt: null } });
      const row = await this.people.mustLock(tx, id);
      if (row.wanted) return;
      // An import's deletion is erased when it is sent, so that a cancel can take it back until then.
      if (row.importId === null || this.people.isErased(row)) await this.people.erase(tx, row);
      await this.decide(tx, id);
    });
  }

  private async decide(tx: Tx, id: string): Promise<void> {
    const row = await this.people.mustLock(tx, id);
    await this.people.update(tx, row, row.person);
  }

  private async change(
    externalId: string,
    outcome: string,
    work: (tx: Tx, row: PersonRow) => Promise<void>,
  ): Promise<PersonResponse> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.views.mustLock(tx, { kind: 'client', externalId });
      await work(tx, row);
      return this.views.stored(tx, await this.people.mustLock(tx, row.id), outcome);
    });
  }
}
