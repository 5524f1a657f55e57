import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import type { FeedEventResponse } from '../feed/feed.dto.js';
import { Feed } from '../feed/feed.js';
import { ImportMentions } from '../imports/report/import-mentions.js';
import { PeopleService } from '../people/api/people.service.js';
import { SessionRecords } from '../sessions/read/session-records.js';
import type { Section } from './export-text.js';

/** Rows that one query reads. */
const PAGE = 500;

/** The id of the last row that was sent, $2. */
const LAST = `coalesce(nullif($2, '')::bigint, 0)`;

/** The calls to the platform about the client $1. */
const CALLS = `
  SELECT id, operation, lane, granted_at AS at, answered_at AS "answeredAt", status, outcome FROM platform_calls
  WHERE person_id = (SELECT id FROM people WHERE kind = 'client' AND external_id = $1) AND id > ${LAST} ORDER BY id`;

/** Webhooks about the client's users of the platform, $1; those about its sessions belong to the sessions. */
const DELIVERIES = `
  SELECT id, event_type AS "eventType", subject, received_at AS "receivedAt", state, reason, repeats
  FROM webhook_deliveries WHERE subject = ANY ($1) AND id > ${LAST} ORDER BY id`;

/** Users of the platform that an event called the client $1, and that the client is not linked to. */
const UNLINKED_USERS = `
  SELECT platform_user_id AS id, role, seen_at AS "seenAt" FROM platform_users
  WHERE external_user_id = $1 AND role = 'Client' AND platform_user_id COLLATE "C" > $2
  ORDER BY platform_user_id COLLATE "C"`;

/** Everything that is stored about one client, part by part (45 CFR 164.524). */
@Injectable()
export class ClientExport {
  constructor(
    private readonly database: Database,
    private readonly people: PeopleService,
    private readonly sessions: SessionRecords,
    private readonly imports: ImportMentions,
    private readonly feed: Feed,
  ) {}

  /**
   * The parts of an export, each read while it is sent. The client is known before, so that the audit entry names it.
   *
   * @throws {Problem} 404
   */
  async sectionsOf(externalId: string): Promise<Section[]> {
    const key = { kind: 'client' as const, externalId };
    const client = await this.people.everythingOf(key);
    const sessionIds = await this.sessions.idsOf(externalId);
    const users = [...client.formerPlatformUserIds, ...(client.platformUserId ? [client.platformUserId] : [])];
    return [
      { name: 'client', items: one(client) },
      { name: 'unlinkedUsers', item: 'unlinked-user', items: this.rows(UNLINKED_USERS, externalId) },
      { name: 'calls', item: 'call', items: this.rows(CALLS, externalId) },
      { name: 'deliveries', item: 'delivery', items: this.rows(DELIVERIES, users) },
      { name: 'sessions', item: 'session', items: this.sessions.of(externalId, sessionIds) },
      { name: 'importRows', item: 'import-row', items: this.imports.of(key) },
      { name: 'events', item: 'event', items: this.events(externalId, sessionIds) },
    ];
  }

  /** @param text a statement that gives rows by their id, behind $2 */
  private rows(text: string, about: string | string[]): AsyncGenerator<object> {
    const { pool } = this.database;
    return paged(async (after) => (await pool.query<{ id: string }>(`${text} LIMIT ${PAGE}`, [about, after])).rows);
  }

  private async *events(externalId: string, sessionIds: readonly string[]): AsyncGenerator<FeedEventResponse> {
    const ofSessions = await this.sessions.feedSubjectsOf(sessionIds);
    const subjects = [`clients/${encodeURIComponent(externalId)}`, ...ofSessions];
    const events = paged((after) => this.feed.about(subjects, after || '0', PAGE));
    for await (const { id: _, ...event } of events) yield event;
  }
}

/** Reads rows page by page. @param read gets the id of the last row, empty at first */
async function* paged<T extends { id: string }>(read: (after: string) => Promise<T[]>): AsyncGenerator<T> {
  let rows: T[] = [];
  do {
    rows = await read(rows.at(-1)?.id ?? '');
    yield* rows;
  } while (rows.length === PAGE);
}

async function* one(item: object): AsyncGenerator<object> {
  yield item;
}
