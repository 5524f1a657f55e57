import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { AnswerVisibility } from '../access/guard/visible-to.js';
import type { Principal } from '../access/identity/scopes.js';
import { Database } from '../database/database.js';
import { FeedReader } from '../feed/feed-reader.js';
import { ClientData, type DataSubject, ERASED, type ErasedCopies } from '../people/store/client-data.js';
import { SessionRecords } from '../sessions/read/session-records.js';
import type { Section } from './export-text.js';

/** Rows per query. */
const PAGE = 500;

/** SQL of the id of the last sent row, $2. */
const LAST_ID = `coalesce(nullif($2, '')::bigint, 0)`;

/** SQL of the calls to the platform about the people $1. */
const CALLS = `
  SELECT id, operation, lane, granted_at AS at, answered_at AS "answeredAt", status, outcome FROM platform_calls
  WHERE person_id = ANY ($1::uuid[]) AND id > ${LAST_ID} ORDER BY id`;

/** SQL of the webhooks about the platform users $1. Webhooks about sessions are part of the sessions. */
const DELIVERIES = `
  SELECT id, event_type AS "eventType", subject, received_at AS "receivedAt", state, reason, repeats
  FROM webhook_deliveries WHERE subject = ANY ($1) AND id > ${LAST_ID} ORDER BY id`;

/** SQL of the platform users that an event named as one of the clients $1, but that are not linked to it. */
const UNLINKED_USERS = `
  SELECT platform_user_id AS id, role, seen_at AS "seenAt" FROM platform_users
  WHERE external_user_id = ANY ($1) AND person_id IS NULL AND role = 'Client' AND platform_user_id COLLATE "C" > $2
  ORDER BY platform_user_id COLLATE "C"`;

/** Erases the webhooks about the platform users $1, unless they are open and bring their event first. */
const ERASE_DELIVERIES = 'DELETE FROM webhook_deliveries WHERE due_at IS NULL AND subject = ANY ($1::text[])';

/** Exports everything stored about a client (45 CFR 164.524). */
@Injectable()
export class ClientExport implements OnModuleInit {
  constructor(
    private readonly database: Database,
    private readonly data: ClientData,
    private readonly sessions: SessionRecords,
    private readonly feed: FeedReader,
    private readonly visibility: AnswerVisibility,
  ) {}

  /** Adds the data that no single feature above stores. */
  onModuleInit(): void {
    this.data.register(
      {
        ...{ section: 'unlinkedUsers', item: 'unlinked-user', tables: { platform_users: {} } },
        read: async ({ externalIds }) => this.rows(UNLINKED_USERS, externalIds),
      },
      {
        ...{ section: 'calls', item: 'call', tables: { platform_calls: {} } },
        read: async ({ people }) => this.rows(CALLS, people),
      },
      {
        ...{ section: 'deliveries', item: 'delivery' },
        tables: { webhook_deliveries: { body: ERASED, signature: ERASED } },
        read: async ({ platformUserIds }) => this.rows(DELIVERIES, platformUserIds),
        ...{ erase: eraseDeliveries, erased: 'webhooks' },
      },
      {
        ...{ section: 'events', item: 'event', tables: { feed_events: { data: 'ids and states only' } } },
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
    const client = await this.data.subjectOf(this.database.pool, { kind: 'client', externalId });
    const sections: Section[] = [];
    for (const { section: name, item, model, read } of this.data.kinds) {
      const items = await read(client);
      const shown = model ? this.visible(model, caller, items) : items;
      sections.push({ name, items: shown, ...(item !== undefined && { item }) });
    }
    // First the client, which is not a list.
    return sections.sort((one, other) => Number(one.item !== undefined) - Number(other.item !== undefined));
  }

  private async *visible(model: new () => object, caller: Principal, items: AsyncIterable<object>) {
    for await (const item of items) yield this.visibility.ofModel(model, caller, item);
  }

  /** Reads rows in pages. @param text a statement that returns rows ordered by id, after $2 */
  private rows(text: string, about: string[]): AsyncGenerator<object> {
    const { pool } = this.database;
    return paged(async (after) => (await pool.query<{ id: string }>(`${text} LIMIT ${PAGE}`, [about, after])).rows);
  }

  private async *events(externalIds: string[], sessionIds: string[]): AsyncGenerator<object> {
    const ofSessions = await this.sessions.feedSubjectsOf(sessionIds);
    yield* this.feed.about([...externalIds.map((id) => `clients/${encodeURIComponent(id)}`), ...ofSessions]);
  }
}

async function eraseDeliveries(tx: PoolClient, { platformUserIds }: DataSubject): Promise<ErasedCopies> {
  return { rows: (await tx.query(ERASE_DELIVERIES, [platformUserIds])).rowCount ?? 0 };
}

/** Reads rows page by page. @param read gets the id of the last row, empty at first */
async function* paged<T extends { id: string }>(read: (after: string) => Promise<T[]>): AsyncGenerator<T> {
  let rows: T[] = [];
  do {
    rows = await read(rows.at(-1)?.id ?? '');
    yield* rows;
  } while (rows.length === PAGE);
}
