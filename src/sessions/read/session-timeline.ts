import { Injectable } from '@nestjs/common';
import { PrismaService } from '../../database/prisma.service.js';
import { decodeCursor, type PageQuery, pageOf } from '../../http/request/page.js';
import { Contract } from '../../platform/contract/contract.js';
import { shownTime } from '../../webhooks/receive/verify-delivery.js';
import { SessionReader } from './session-reader.js';
import type { TimelineEntryResponse, TimelinePageResponse } from './timeline.dto.js';

/** A number as text in numeric sort order. */
const sortable = (id: string): string => `lpad(${id}::text, 20, '0')`;

/** SQL of how the request of a session ended. */
const ENDED_AS = `CASE WHEN abandoned THEN 'Abandoned' WHEN session_id IS NULL THEN 'Rejected' ELSE 'Settled' END`;

/**
 * The timeline of session $1, newest first: at most $4 entries before the one at $2 with the key $3. A delivery belongs to
 * a session by the platform's id or by one of its processing ids. The row has the moments of a request that became an alias
 * of it. OFFSET 0 keeps the planner from reading all revisions.
 */
const TIMELINE = `
  SELECT * FROM (
    SELECT 'event' AS kind, received_at AS at, 'event:' || ${sortable('id')} AS key,
      jsonb_build_object('deliveryId', id::text, 'eventType', event_type, 'sentAt', sent_at, 'state', state,
        'reason', reason, 'repeats', repeats) AS fact
    FROM webhook_deliveries WHERE subject = ANY (ARRAY(SELECT session_id FROM sessions WHERE id = $1::uuid
      UNION ALL SELECT processing_id FROM processing_sessions WHERE session = $1::uuid))
    UNION ALL SELECT 'request', at, 'request:' || place, jsonb_build_object('state', moment.state)
    FROM sessions s CROSS JOIN LATERAL (
      VALUES (0, s.requested_at, 'Requested'), (1, s.settled_at, ${ENDED_AS})) AS moment (place, at, state)
    WHERE s.id = $1::uuid AND at IS NOT NULL
    UNION ALL SELECT 'notes', r.fetched_at, 'notes:' || d.id || ':' || ${sortable('r.revision')},
      jsonb_build_object('documentId', d.id, 'noteTemplateId', d.note_template_id, 'revision', r.revision)
    FROM session_documents d
    CROSS JOIN LATERAL (SELECT * FROM document_revisions WHERE document = d.id OFFSET 0) AS r WHERE d.session = $1::uuid
  ) AS entry WHERE (at, key COLLATE "C") < ($2::timestamptz, $3) ORDER BY at DESC, key COLLATE "C" DESC LIMIT $4`;

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
    private readonly prisma: PrismaService,
    private readonly reader: SessionReader,
    private readonly contract: Contract,
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
    const rows = await this.prisma.$queryRawUnsafe<TimelineRow[]>(TIMELINE, session.id, at, key, limit + 1);
    return pageOf(
      rows,
      limit,
      (row) => [row.at.toISOString(), row.key],
      (row) => this.shown(row),
    );
  }

  private shown({ kind, at, key, fact }: TimelineRow): TimelineEntryResponse {
    const more = {
      event: () => ({ sentAt: shownTime(Number(fact.sentAt)) }),
      request: () => ({}),
      notes: () => ({ noteTemplateName: this.contract.templateName(String(fact.noteTemplateId)) }),
    };
    return { key, at, kind, event: null, request: null, notes: null, [kind]: { ...fact, ...more[kind]() } };
  }
}
