import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Audit } from '../audit/audit.js';
import { Database } from '../database/database.js';
import { PrismaService } from '../database/prisma.service.js';
import { PeopleService } from '../people/api/people.service.js';
import type { PersonResponse } from '../people/api/person-view.js';
import { familyOf } from '../people/store/former-ids.repository.js';
import { awaitRetention } from '../people/store/legal-hold.js';
import { ON_RELEASE, PeopleRepository } from '../people/store/people.repository.js';
import { USER_MANAGEMENT_QUEUE } from '../queue/backend/queue-names.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';

/** Legal holds: nothing about a held client, or about clients merged with it, is removed here or on the platform. */
@Injectable()
export class LegalHolds {
  constructor(
    private readonly prisma: PrismaService,
    private readonly database: Database,
    private readonly people: PeopleRepository,
    private readonly views: PeopleService,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
  ) {}

  /** @param reason an id or a code, for the audit log @throws {Problem} 404; 409 `renamed` or `merged` */
  async set(externalId: string, reason: string): Promise<PersonResponse> {
    return this.change(externalId, `held for ${reason}`, async (tx, ids) => {
      await awaitRetention(tx);
      await tx.query('UPDATE people SET held_at = coalesce(held_at, clock_timestamp()) WHERE id = ANY ($1::uuid[])', [
        ids,
      ]);
      for (const id of ids) {
        const row = await this.people.mustLock(tx, id);
        if (!row.wanted && row.state !== 'deleted') await this.people.update(tx, row, row.person);
      }
    });
  }

  /** Releases a hold. A deletion that it deferred follows now. @throws {Problem} as `set` */
  async release(externalId: string): Promise<PersonResponse> {
    return this.change(externalId, 'released', async (tx, ids) => {
      const { rowCount } = await tx.query(
        'UPDATE people SET held_at = NULL WHERE id = ANY ($1::uuid[]) AND held_at IS NOT NULL',
        [ids],
      );
      for (const id of rowCount === 0 ? [] : ids) {
        const row = await this.people.mustLock(tx, id);
        // The names of a merged client stay with its survivor, unless its own account must be deleted.
        if (row.wanted || (row.mergedInto !== null && row.state === 'deleted')) continue;
        await this.people.wantAbsence(tx, row, ON_RELEASE);
        const erased = await this.people.mustLock(tx, id);
        await this.people.update(tx, erased, erased.person);
      }
    });
  }

  /** @param work gets the client first, then those that were merged into it */
  private async change(
    externalId: string,
    outcome: string,
    work: (tx: PoolClient, ids: string[]) => Promise<void>,
  ): Promise<PersonResponse> {
    const key = { kind: 'client', externalId } as const;
    const view = await this.database.transaction(async (tx) => {
      const { id } = await this.views.found(key, await this.people.lock(tx, key), tx);
      const { people } = await familyOf(tx, key.kind, externalId);
      await work(tx, [id, ...people.filter((one) => one !== id)]);
      const changed = this.views.view(await this.people.mustLock(tx, id));
      await this.audit.store(await this.prisma.in(tx), outcome);
      return changed;
    });
    this.notifier.notify(USER_MANAGEMENT_QUEUE);
    return view;
  }
}
