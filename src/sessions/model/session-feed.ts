import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import { SubjectIds } from '../../feed/subject-ids.js';
import { UUID } from '../../http/request/uuid-param.js';
import { peopleOf } from '../../people/store/person-users.js';
import type { SessionFeedEvent } from './publish.js';
import type { SessionRow } from './session-row.js';

/** Publishes the events of sessions in the transactions that cause them. */
@Injectable()
export class SessionFeed {
  constructor(
    prisma: PrismaService,
    private readonly feed: Feed,
    subjects: SubjectIds,
  ) {
    subjects.register('sessions', async (id) => {
      if (!UUID.test(id)) return [];
      const row = await prisma.session.findUnique({ where: { id }, select: { aliasOf: true } });
      const into = row?.aliasOf ?? id;
      const aliases = await prisma.session.findMany({ where: { aliasOf: into }, select: { id: true } });
      return [into, ...aliases.map((alias) => alias.id)];
    });
  }

  /** @param row of the session, after its changes */
  async publish(tx: Tx, row: SessionRow, events: readonly SessionFeedEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { id, sessionId, partnerAppointmentId, aiNotesEnabled, providerUserId, clientUserIds } = row;
    const people = await peopleOf(tx, [...(providerUserId === null ? [] : [providerUserId]), ...clientUserIds]);
    const named = (user: string | null) => (user === null ? null : (people.get(user)?.externalId ?? null));
    const clients = clientUserIds.flatMap((user) => named(user) ?? []);
    const shown = { sessionId, partnerAppointmentId, aiNotesEnabled, provider: named(providerUserId), clients };
    const subject = `sessions/${id}`;
    await this.feed.append(
      tx,
      ...events.map(({ type, ...event }) => ({ type, subject, data: { ...shown, ...event } })),
    );
  }
}
