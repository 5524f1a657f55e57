import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import type { Tx } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import {
  type EventHandler,
  EventHandlers,
  type Handled,
  type InboxEvent,
} from '../../webhooks/process/event-handlers.js';
import type { PersonKey } from '../rules/profile.js';
import { applyEvent } from '../rules/resolve-rule.js';
import { FormerIdsRepository } from '../store/former-ids.repository.js';
import { PeopleRepository } from '../store/people.repository.js';
import type { PersonRow } from '../store/person-row.js';
import { kindOfRole, PlatformUsersRepository, type UnknownPlatformUser } from '../store/platform-users.repository.js';

/**
 * Handles USER_CREATED. Links the user to the person with its external id if the role fits; this settles a client whose
 * create got no answer. If the person has another user, this one goes with it. A former id means the person that has its
 * successor, because the platform keeps the id of the create. A user without such a person is listed as unknown to the
 * EHR. The role of a user is kept, because it decides whether a deletion may delete the user.
 */
@Injectable()
export class UserCreatedHandler implements EventHandler<InboxEvent<'USER_CREATED'>> {
  constructor(
    private readonly people: PeopleRepository,
    private readonly users: PlatformUsersRepository,
    private readonly formerIds: FormerIdsRepository,
    private readonly feed: Feed,
    private readonly audit: Audit,
    handlers: EventHandlers,
  ) {
    handlers.register(this, 'USER_CREATED');
  }

  async handle({ userId, role, externalUserId }: InboxEvent<'USER_CREATED'>, tx: Tx): Promise<Handled> {
    const user = { platformUserId: userId, role, externalUserId };
    if (!(await this.users.isDeleted(tx, userId))) await this.link(tx, user);
    await this.announce(tx, user);
    return 'processed';
  }

  /** Links a user, again if its person was renamed or merged, or it was linked to another one, before the lock. */
  private async link(tx: Tx, user: UnknownPlatformUser): Promise<void> {
    const { platformUserId, role, externalUserId } = user;
    const kind = kindOfRole(role);
    const key = kind && externalUserId !== null ? { kind, externalId: externalUserId } : undefined;
    const id = await this.knownPerson(tx, platformUserId, key);
    const row = id !== undefined ? await this.people.lock(tx, { id }) : key && (await this.people.lock(tx, key));
    // A deletion of this user may have been answered before the person was locked.
    if (await this.users.isDeleted(tx, platformUserId)) return;
    if ((await this.knownPerson(tx, platformUserId, key)) !== id) return this.link(tx, user);
    if (row && usersOf(row).includes(platformUserId)) {
      await this.users.save(tx, { platformUserId, role, externalUserId: null });
      // The role may allow a deletion that waits for it.
      const current = await this.people.mustLock(tx, row.id);
      await this.people.update(tx, current, current.person);
      return;
    }
    const isOpen = row && (row.wanted || row.platformUserId !== null || row.person.unsettled !== null);
    if (!isOpen) return this.users.save(tx, user);
    await this.people.update(tx, row, applyEvent(row.person, platformUserId));
    const subjects = { [row.kind]: [row.externalId], 'platform-user': [platformUserId] };
    await this.audit.system('person.linked-by-event', subjects, 'ok', tx);
  }

  /** The person that has the user, or else the successor of a former id. */
  private async knownPerson(tx: Tx, platformUserId: string, key: PersonKey | undefined): Promise<string | undefined> {
    const owner = await this.people.ownerOf(tx, platformUserId);
    if (owner || !key) return owner?.id;
    return (await this.formerIds.find(key.kind, [key.externalId], tx)).get(key.externalId)?.id;
  }

  private async announce(tx: Tx, { platformUserId: userId, role, externalUserId }: UnknownPlatformUser) {
    const person = await this.people.ownerOf(tx, userId);
    const subject = person ? `${person.kind}s/${encodeURIComponent(person.externalId)}` : 'people/unknown-to-ehr';
    await this.feed.append(tx, {
      type: 'user.created',
      subject,
      data: { userId, role, externalUserId },
    });
  }
}

const usersOf = ({ platformUserId, person }: PersonRow): (string | null)[] => [
  platformUserId,
  ...person.others.map(({ id }) => id),
];
