import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AnswerVisibility } from '../access/guard/visible-to.js';
import type { Principal } from '../access/identity/scopes.js';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { FeedReader } from '../feed/feed-reader.js';
import { ClientData, type DataSubject, ERASED, type ErasedCopies } from '../people/store/client-data.js';
import { identityOf } from '../people/store/former-ids.repository.js';
import { SessionRecords } from '../sessions/read/session-records.js';
import type { Section } from './export-text.js';

/** Rows per query. */
const PAGE = 500;

/** Exports everything stored about a client (45 CFR 164.524). */
@Injectable()
export class ClientExport implements OnModuleInit {
  constructor(
    private readonly prisma: PrismaService,
    private readonly data: ClientData,
    private readonly sessions: SessionRecords,
    private readonly feed: FeedReader,
    private readonly visibility: AnswerVisibility,
  ) {}

  /** Adds the data that no single feature above stores. */
  onModuleInit(): void {
    this.data.register(
      {
        ...{ section: 'unlinkedUsers', isList: true, tables: { platform_users: {} } },
        read: async ({ externalIds }) => this.unlinkedUsers(externalIds),
      },
      {
        ...{ section: 'calls', isList: true, tables: { platform_calls: {} } },
        read: async ({ id }) => this.calls(id),
      },
      {
        ...{ section: 'deliveries', isList: true },
        tables: { webhook_deliveries: { body: ERASED, signature: ERASED } },
        read: async ({ platformUserIds }) => this.deliveries(platformUserIds),
        ...{ erase: eraseDeliveries, erased: 'webhooks' },
      },
      {
        ...{ section: 'events', isList: true, tables: { feed_events: { data: 'ids and states only' } } },
        read: async ({ externalId, externalIds }) => this.events(externalIds, await this.sessions.idsOf(externalId)),
      },
    );
  }

  /**
   * The sections of an export that the caller may see, each read while it is sent. Their subjects are read first, for
   * the audit entry.
   *
   * @throws {Problem} 404
   */
  async sectionsOf(externalId: string, caller: Principal): Promise<Section[]> {
    const key = { kind: 'client', externalId } as const;
    const client: DataSubject = { ...key, ...(await identityOf(this.prisma, key)) };
    const sections: Section[] = [];
    for (const { section: name, isList, model, read } of this.data.kinds) {
      const items = await read(client);
      sections.push({ name, isList, items: model ? this.visible(model, caller, items) : items });
    }
    // First the client, which is not a list.
    return sections.sort((one, other) => Number(one.isList) - Number(other.isList));
  }

  private async *visible(model: new () => object, caller: Principal, items: AsyncIterable<object>) {
    for await (const item of items) yield this.visibility.ofModel(model, caller, item);
  }

  /** The platform users that an event named as this client, but that are not linked to it. */
  private unlinkedUsers(externalIds: string[]): AsyncGenerator<object> {
    return paged('', async (after) => {
      const rows = await this.prisma.platformUser.findMany({
        where: { externalUserId: { in: externalIds }, personId: null, role: 'Client', platformUserId: { gt: after } },
        ...{ orderBy: { platformUserId: 'asc' }, take: PAGE },
      });
      return rows.map(({ platformUserId: id, role, seenAt }) => ({ id, role, seenAt }));
    });
  }

  /** The calls to the platform about a person. */
  private calls(person: string | null): AsyncGenerator<object> {
    return paged(0n, async (after) => {
      const rows = await this.prisma.platformCall.findMany({
        where: { personId: { in: person === null ? [] : [person] }, id: { gt: after } },
        ...{ orderBy: { id: 'asc' }, take: PAGE },
      });
      return rows.map(({ personId: _, ...call }) => call);
    });
  }

  /** The webhooks about these platform users; sessions have their own. SQL, because Prisma renames their states. */
  private deliveries(users: string[]): AsyncGenerator<object> {
    const read = (after: bigint) => this.prisma.$queryRaw<{ id: bigint }[]>`
      SELECT id, event_type AS "eventType", subject, received_at AS "receivedAt", state, reason, repeats
      FROM webhook_deliveries WHERE subject = ANY (${users}::text[]) AND id > ${after} ORDER BY id LIMIT ${PAGE}`;
    return paged(0n, read);
  }

  private async *events(externalIds: string[], sessionIds: string[]): AsyncGenerator<object> {
    const ofSessions = await this.sessions.feedSubjectsOf(sessionIds);
    yield* this.feed.about([...externalIds.map((id) => `clients/${encodeURIComponent(id)}`), ...ofSessions]);
  }
}

/** Erases the webhooks about a person's platform users, unless they are open and bring their event first. */
async function eraseDeliveries(tx: Tx, { platformUserIds }: DataSubject): Promise<ErasedCopies> {
  const where = { dueAt: null, subject: { in: platformUserIds } };
  return { rows: (await tx.webhookDelivery.deleteMany({ where })).count };
}

/** Reads rows page by page, and shows their ids as texts. @param read gets the id of the last row, or `first` */
async function* paged<Id>(first: Id, read: (after: Id) => Promise<{ id: Id }[]>): AsyncGenerator<object> {
  for (let rows = await read(first); ; rows = await read(rows.at(-1)?.id as Id)) {
    for (const row of rows) yield { ...row, id: String(row.id) };
    if (rows.length < PAGE) return;
  }
}
