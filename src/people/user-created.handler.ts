import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Doorbell } from '../queue/doorbell.js';
import { USER_MANAGEMENT_QUEUE } from '../queue/queue-names.js';
import { type EventHandler, type Handled, HandlesEvents, type InboxEvent } from '../webhooks/event-handlers.js';
import { PeopleRepository } from './people.repository.js';
import type { PersonRow } from './person-row.js';
import { kindOfRole, PlatformUsersRepository, type UnknownPlatformUser } from './platform-users.repository.js';
import { WakesRepository } from './wakes.repository.js';
import { WishesRepository } from './wishes.repository.js';

/**
 * USER_CREATED: links the person that it names by the EHR's id, when the role fits and no other mapping holds either
 * side. This settles a client whose create got no answer. Whoever is not named is listed as unknown to the EHR. Of a user
 * who is linked already the role counts: whoever was found by an email alone and has another is somebody else.
 */
@Injectable()
@HandlesEvents('USER_CREATED')
export class UserCreatedHandler implements EventHandler {
  constructor(
    private readonly people: PeopleRepository,
    private readonly wakes: WakesRepository,
    private readonly wishes: WishesRepository,
    private readonly users: PlatformUsersRepository,
    private readonly doorbell: Doorbell,
  ) {}

  async handle({ body }: InboxEvent, tx: PoolClient): Promise<Handled> {
    const { userId, externalUserId, role } = body.payload as { userId: string; externalUserId?: unknown; role: string };
    const externalId = typeof externalUserId === 'string' ? externalUserId : null;
    if (await this.users.isDeleted(tx, userId)) return 'processed';
    const kind = kindOfRole(role);
    const holder = await this.people.findByUser(tx, userId);
    if (holder) {
      await this.judgeRole(tx, holder, { platformUserId: userId, role, externalUserId: externalId });
      return 'processed';
    }
    const row = kind && externalId !== null ? await this.people.find(tx, kind, externalId, true) : undefined;
    const isOpen = row && row.person.platformUserId === null && (row.person.wanted || row.person.attempt !== null);
    if (!isOpen) {
      await this.users.keep(tx, { platformUserId: userId, role, externalUserId: externalId });
      return 'processed';
    }
    await this.wishes.link(tx, row.id, userId, 'event');
    await this.people.redecide(tx, row.id);
    if (kind === 'provider') await this.wakes.clientsOf(tx, row.id);
    return 'processed';
  }

  private async judgeRole(tx: PoolClient, { id, kind, person }: PersonRow, user: UnknownPlatformUser): Promise<void> {
    if (person.roleKnown) return;
    if (kindOfRole(user.role) === kind) await this.wishes.confirmRole(tx, id);
    else {
      await this.users.keep(tx, user);
      await this.wishes.unlink(tx, id);
    }
    await this.people.redecide(tx, id);
    if (kind === 'provider') await this.wakes.clientsOf(tx, id);
  }

  afterCommit(): void {
    this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'user-created');
  }
}
