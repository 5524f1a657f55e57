import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import type { AuditRecord } from '../access/audit/audit-record.js';
import { Database } from '../database/database.js';
import type { FeedEventResponse } from '../feed/feed.dto.js';
import { Feed } from '../feed/feed.js';
import { ImportMentions } from '../imports/report/import-mentions.js';
import { PeopleService } from '../people/api/people.service.js';
import { type SessionRecord, SessionRecords } from '../sessions/read/session-records.js';
import type { Section } from './export-text.js';

/** Rows that are read at once. */
const PAGE = 500;

/** Everything that is held about one client, part by part (45 CFR 164.524). */
@Injectable()
export class ClientExport {
  constructor(
    private readonly database: Database,
    private readonly people: PeopleService,
    private readonly sessions: SessionRecords,
    private readonly imports: ImportMentions,
    private readonly feed: Feed,
    private readonly audit: Audit,
  ) {}

  /**
   * The parts of an export, each read as it is sent.
   *
   * @param entry begins an entry of the audit trail for the request, if its key is still good: for each page of sessions
   * @throws {Problem} 404
   */
  async sectionsOf(externalId: string, entry: () => Promise<AuditRecord>): Promise<Section[]> {
    const key = { kind: 'client' as const, externalId };
    const client = await this.people.everythingOf(key);
    const sessionIds: string[] = [];
    return [
      { name: 'client', items: one(client) },
      { name: 'calls', item: 'call', items: this.calls(externalId) },
      { name: 'sessions', item: 'session', items: this.sessionsOf(externalId, entry, sessionIds) },
      { name: 'importRows', item: 'import-row', items: this.imports.of(key) },
      { name: 'events', item: 'event', items: this.events(externalId, sessionIds) },
    ];
  }

  /** Who gets a page of sessions is on record before it leaves. @param ids is filled with those of the sessions */
  private async *sessionsOf(
    externalId: string,
    entry: () => Promise<AuditRecord>,
    ids: string[],
  ): AsyncGenerator<SessionRecord> {
    for await (const page of this.sessions.pagesOf(externalId)) {
      const record = await entry();
      record.subjects.add('client', externalId);
      for (const { id, sessionId, provider } of page) {
        record.subjects.add('session', id);
        record.subjects.add('platform-session', sessionId);
        record.subjects.add('provider', provider);
        ids.push(id);
      }
      await this.audit.commitRecord(record);
      for (const session of page) yield await this.sessions.everythingOf(session);
    }
  }

  /** The calls to the platform about the client. */
  private async *calls(externalId: string): AsyncGenerator<object> {
    let after = '0';
    for (;;) {
      const { rows } = await this.database.pool.query<{ id: string }>(
        `SELECT id, operation, lane, granted_at AS at, answered_at AS "answeredAt", status, outcome FROM platform_calls
         WHERE person_id = (SELECT id FROM people WHERE kind = 'client' AND external_id = $1) AND id > $2
         ORDER BY id LIMIT ${PAGE}`,
        [externalId, after],
      );
      yield* rows;
      after = rows.at(-1)?.id ?? after;
      if (rows.length < PAGE) return;
    }
  }

  private async *events(externalId: string, sessionIds: readonly string[]): AsyncGenerator<FeedEventResponse> {
    const subjects = [`clients/${encodeURIComponent(externalId)}`, ...sessionIds.map((id) => `sessions/${id}`)];
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
