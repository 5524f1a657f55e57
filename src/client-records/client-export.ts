import { Injectable } from '@nestjs/common';
import { AnswerVisibility } from '../access/guard/visible-to.js';
import type { Principal } from '../access/identity/scopes.js';
import { Database } from '../database/database.js';
import { familyOf } from '../database/former-ids.js';
import type { FeedEventResponse } from '../feed/feed.dto.js';
import { FeedReader } from '../feed/feed-reader.js';
import { ImportMentions } from '../imports/api/import-mentions.js';
import { PersonRecords } from '../people/api/person-records.js';
import { PersonResponse } from '../people/api/person-view.js';
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

/** Exports everything stored about a client (45 CFR 164.524). */
@Injectable()
export class ClientExport {
  constructor(
    private readonly database: Database,
    private readonly people: PersonRecords,
    private readonly sessions: SessionRecords,
    private readonly imports: ImportMentions,
    private readonly feed: FeedReader,
    private readonly visibility: AnswerVisibility,
  ) {}

  /**
   * The sections of an export that the caller may see, each read while it is sent. Their subjects are read first, for
   * the audit entry.
   *
   * @throws {Problem} 404
   */
  async sectionsOf(externalId: string, caller: Principal): Promise<Section[]> {
    const shown = <T>(record: T) => this.visibility.ofModel(PersonResponse, caller, record);
    const client = await this.people.find({ kind: 'client', externalId });
    const { people, externalIds } = await familyOf(this.database.pool, 'client', externalId);
    const formerIds = externalIds.filter((id) => id !== externalId);
    const merged = await this.people.findMerged(people);
    const sessionIds = await this.sessions.idsOf(externalId);
    const users = [...client.formerPlatformUserIds, ...(client.platformUserId ? [client.platformUserId] : [])];
    return [
      { name: 'client', items: each([shown({ ...client, formerIds })]) },
      { name: 'mergedClients', item: 'merged-client', items: each(merged.map(shown)) },
      { name: 'unlinkedUsers', item: 'unlinked-user', items: this.rows(UNLINKED_USERS, externalIds) },
      { name: 'calls', item: 'call', items: this.rows(CALLS, people) },
      { name: 'deliveries', item: 'delivery', items: this.rows(DELIVERIES, users) },
      { name: 'sessions', item: 'session', items: this.sessions.of(externalId, sessionIds) },
      { name: 'importRows', item: 'import-row', items: this.imports.of('client', externalIds) },
      { name: 'events', item: 'event', items: this.events(externalIds, sessionIds) },
    ];
  }

  /** Reads rows in pages. @param text a statement that returns rows ordered by id, after $2 */
  private rows(text: string, about: string[]): AsyncGenerator<object> {
    const { pool } = this.database;
    return paged(async (after) => (await pool.query<{ id: string }>(`${text} LIMIT ${PAGE}`, [about, after])).rows);
  }

  private async *events(externalIds: string[], sessionIds: readonly string[]): AsyncGenerator<FeedEventResponse> {
    const ofSessions = await this.sessions.feedSubjectsOf(sessionIds);
    yield* this.feed.about([...externalIds.map((id) => `clients/${encodeURIComponent(id)}`), ...ofSessions]);
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

async function* each(items: object[]): AsyncGenerator<object> {
  yield* items;
}
