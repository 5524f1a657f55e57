import { Injectable } from '@nestjs/common';
import { Database } from '../database/database.js';
import type { FeedEventResponse } from '../feed/feed.dto.js';
import { Feed } from '../feed/feed.js';
import { ImportMentions } from '../imports/report/import-mentions.js';
import { PeopleService } from '../people/api/people.service.js';
import { SessionRecords } from '../sessions/read/session-records.js';
import type { Section } from './export-text.js';

/** Rows that are read at once. */
const PAGE = 500;

/** The number of the row that was sent last, $2. */
const LAST = `coalesce(nullif($2, '')::bigint, 0)`;

/** The calls to the platform about the client $1. */
const CALLS = `
  SELECT id, operation, lane, granted_at AS at, answered_at AS "answeredAt", status, outcome FROM platform_calls
  WHERE person_id = (SELECT id FROM people WHERE kind = 'client' AND external_id = $1) AND id > ${LAST} ORDER BY id`;

/** Webhooks about its users of the platform, $1; those about its sessions stand there. */
const DELIVERIES = `
  SELECT id, event_type AS "eventType", subject, received_at AS "receivedAt", state, reason, repeats
  FROM webhook_deliveries WHERE subject = ANY ($1) AND id > ${LAST} ORDER BY id`;

/** Users of the platform of whom an event said that they are the client $1, and that it is not linked to. */
const UNLINKED_USERS = `
  SELECT platform_user_id AS id, role, seen_at AS "seenAt" FROM platform_users
  WHERE external_user_id = $1 AND role = 'Client' AND platform_user_id COLLATE "C" > $2
  ORDER BY platform_user_id COLLATE "C"`;

/** Everything that is held about one client, part by part (45 CFR 164.524). */
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
   * The parts of an export, each read as it is sent. Whom they are about is known before: the request's entry names them.
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
  private async *rows(text: string, about: string | string[]): AsyncGenerator<object> {
    let after = '';
    for (;;) {
      const { rows } = await this.database.pool.query<{ id: string }>(`${text} LIMIT ${PAGE}`, [about, after]);
      yield* rows;
      after = rows.at(-1)?.id ?? after;
      if (rows.length < PAGE) return;
    }
  }

  private async *events(externalId: string, sessionIds: readonly string[]): AsyncGenerator<FeedEventResponse> {
    const ofSessions = await this.sessions.feedSubjectsOf(sessionIds);
    const subjects = [`clients/${encodeURIComponent(externalId)}`, ...ofSessions];
    let after = '0';
    for (;;) {
      const events = await this.feed.about(subjects, after, PAGE);
      for (const { id: _, ...event } of events) yield event;
      after = events.at(-1)?.id ?? after;
      if (events.length < PAGE) return;
    }
  }
}

async function* one(item: object): AsyncGenerator<object> {
  yield item;
}
