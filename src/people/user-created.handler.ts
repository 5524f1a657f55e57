import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Doorbell } from '../queue/doorbell.js';
import { USER_MANAGEMENT_QUEUE } from '../queue/queue-names.js';
import { type EventHandler, type Handled, HandlesEvents, type InboxEvent } from '../webhooks/event-handlers.js';
import { PeopleRepository } from './people.repository.js';
import type { PersonKind } from './person.js';
import { PlatformUsersRepository } from './platform-users.repository.js';
import { WakesRepository } from './wakes.repository.js';
import { WishesRepository } from './wishes.repository.js';

/** The kinds of people that the platform's roles mean (spec, User events); OrgAdmin is nobody of the EHR's. */
const KINDS: Record<string, PersonKind> = { Client: 'client', HealthcareProvider: 'provider' };

/**
 * USER_CREATED: links the person that it names by the EHR's id, when the role fits and no other mapping holds either
 * side. This settles a client whose create got no answer. Whoever is not named is listed as unknown to the EHR.
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
    if (await this.users.isKnown(tx, userId)) return 'processed';
    const kind = KINDS[role];
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

  afterCommit(): void {
    this.doorbell.ring(USER_MANAGEMENT_QUEUE, 'user-created');
  }
}
