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
    return [
      { name: 'client', items: one(client) },
      { name: 'calls', item: 'call', items: this.calls(externalId) },
      { name: 'sessions', item: 'session', items: this.sessions.of(externalId, sessionIds) },
      { name: 'importRows', item: 'import-row', items: this.imports.of(key) },
      { name: 'events', item: 'event', items: this.events(externalId, sessionIds) },
    ];
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
