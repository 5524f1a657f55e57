import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database.js';
import { decodeCursor, type PageQuery, pageOf } from '../../http/request/page.js';
import { ENDED_AS } from '../model/session-columns.js';
import { SessionReader } from './session-reader.js';
import type { TimelineEntryResponse, TimelinePageResponse } from './timeline.dto.js';

/** True for entries before the last one of the previous page, with its time $2 and key $3. */
const before = (at: string, key: string): string => `${at} <= $2 AND (${at}, (${key}) COLLATE "C") < ($2, $3)`;

/** A number as text in numeric sort order. */
const sortable = (id: string): string => `lpad(${id}::text, 20, '0')`;

const EVENT = `'event:' || ${sortable('id')}`;
const REVISION = `'notes:' || r.document || ':' || ${sortable('r.revision')}`;

/**
 * The timeline of session $1, newest first, with at most $4 entries of each kind, each read by its own index. A
 * delivery belongs to a session by the platform's id or by one of its processing ids.
 */
const TIMELINE = `
  SELECT * FROM (
    SELECT 'event' AS kind, found.* FROM (
        SELECT session_id AS id FROM sessions WHERE id = $1 AND session_id IS NOT NULL
        UNION ALL SELECT processing_id FROM processing_sessions WHERE session = $1
      ) AS named CROSS JOIN LATERAL (
        SELECT received_at AS at, ${EVENT} AS key, jsonb_build_object('deliveryId', id::text, 'eventType', event_type,
          'sentAt', sent_at, 'state', state, 'reason', reason, 'repeats', repeats) AS fact
        FROM webhook_deliveries WHERE subject = named.id AND ${before('received_at', EVENT)}
        ORDER BY received_at DESC, id DESC LIMIT $4
      ) AS found
    UNION ALL SELECT 'request', at, 'request:' || place, jsonb_build_object('state', moment.state)
      FROM sessions s CROSS JOIN LATERAL (
        VALUES (0, s.requested_at, 'Requested'), (1, s.settled_at, ${ENDED_AS})) AS moment (place, at, state)
      WHERE s.id = $1 AND ${before('at', "'request:' || place")}
    UNION ALL SELECT 'notes', found.* FROM session_documents d CROSS JOIN LATERAL (
        SELECT r.fetched_at AS at, ${REVISION} AS key, jsonb_build_object('documentId', d.id,
          'noteTemplateId', d.note_template_id, 'revision', r.revision) AS fact
        FROM document_revisions r WHERE r.document = d.id AND ${before('r.fetched_at', REVISION)}
        ORDER BY r.revision DESC LIMIT $4
      ) AS found
      WHERE d.session = $1
  ) AS entry ORDER BY at DESC, key COLLATE "C" DESC LIMIT $4`;

/** A row of the timeline. */
interface TimelineRow {
  kind: TimelineEntryResponse['kind'];
  at: Date;
  key: string;
  fact: Record<string, unknown>;
}

/** The timeline of a session: events, requests and versions of notes, without their content. */
@Injectable()
export class SessionTimeline {
  constructor(
    private readonly database: Database,
    private readonly reader: SessionReader,
  ) {}

  /**
   * One page, newest first.
   *
   * @param id our id or the platform's
   * @throws {Problem} 404 `unknown-session`, 503 `data-unreadable`
   */
  async page(id: string, { limit, cursor }: PageQuery): Promise<TimelinePageResponse> {
    const session = await this.reader.find(id);
    const [at = 'infinity', key = ''] = decodeCursor<[at: string, key: string]>(cursor, 'time', 'string') ?? [];
    const { rows } = await this.database.pool.query<TimelineRow>(TIMELINE, [session.id, at, key, limit + 1]);
    return pageOf(rows, limit, (row) => [row.at.toISOString(), row.key], shown);
  }
}

function shown({ kind, at, key, fact }: TimelineRow): TimelineEntryResponse {
  const moment = kind === 'event' ? { ...fact, sentAt: new Date(Number(fact.sentAt)) } : fact;
  return { key, at, kind, event: null, request: null, notes: null, [kind]: moment };
}
