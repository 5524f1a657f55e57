import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import { Feed } from '../../feed/feed.js';
import type { PendingFeedEvents } from '../../feed/feed-event.js';
import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import type { EventView } from './apply-event.js';

/** Sessions of one transaction: their rows stay locked until its commit. */
const BATCH = 50;

/** A request on its way that the session fits: its answer says under which id the EHR knows the session. */
const MAY_BE_REQUESTED = `
  SELECT 1 FROM session_requests r
  WHERE r.correlation_id = sessions.event_appointment_id AND r.provider_user_id = sessions.event_provider_user_id
    AND r.state IN ('Requested', 'Unknown') AND r.lease_owner IS NOT NULL`;

interface Untold {
  id: string;
  session_id: string | null;
  partner_appointment_id: string | null;
  state: string;
  error_code: string | null;
  notes_revision: number;
  ai_notes_enabled: boolean | null;
  news: string[];
}

export type SessionFeedEventType = PendingFeedEvents['type'] & `session.${string}`;

/** News as it is noted on a session's row. */
export interface NotedNews {
  type: SessionFeedEventType;
  /** As the event said it; what was not told by an event shows what the session's row says. */
  aiNotesEnabled?: boolean | null;
}

/**
 * Tells the EHR what happened to sessions. What changes a session only notes that there is news, for it may be told
 * later: while a request that the session fits is on its way, nobody knows yet under which id the EHR knows it.
 */
@Injectable()
export class SessionFeedEvents {
  constructor(
    private readonly database: Database,
    private readonly feed: Feed,
  ) {}

  /** Notes news on a session's row, which must be locked. @param id ours */
  async note(tx: PoolClient, id: string, news: readonly NotedNews[]): Promise<void> {
    if (news.length === 0) return;
    await tx.query(
      `UPDATE sessions SET news = news || $2::text[], news_at = coalesce(news_at, clock_timestamp()) WHERE id = $1`,
      [id, news.map((noted) => JSON.stringify(noted))],
    );
  }

  /** Appends to the feed what was noted, until nothing is left. */
  async tell(): Promise<void> {
    while ((await this.database.transaction((tx) => this.tellBatch(tx))) === BATCH);
  }

  private async tellBatch(tx: PoolClient): Promise<number> {
    const { rows } = await tx.query<Untold>(
      `SELECT id, session_id, partner_appointment_id, state, error_code, notes_revision,
         ai_notes_enabled, news FROM sessions
       WHERE news_at IS NOT NULL AND NOT EXISTS (${MAY_BE_REQUESTED})
       ORDER BY news_at LIMIT $1 FOR UPDATE SKIP LOCKED`,
      [BATCH],
    );
    if (rows.length === 0) return 0;
    await tx.query(`UPDATE sessions SET news = '{}', news_at = NULL WHERE id = ANY($1::uuid[])`, [
      rows.map((row) => row.id),
    ]);
    for (const row of rows) {
      for (const noted of row.news) await this.feed.append(tx, newsOf(row, readNoted(noted)));
    }
    return rows.length;
  }
}

/** A bare type was noted by an earlier version of the service. */
function readNoted(text: string): NotedNews {
  return text.startsWith('{') ? (JSON.parse(text) as NotedNews) : { type: text as SessionFeedEventType };
}

function newsOf(row: Untold, { type, aiNotesEnabled = row.ai_notes_enabled }: NotedNews): PendingFeedEvents {
  const more: Partial<Record<SessionFeedEventType, PendingFeedEvents['data']>> = {
    'session.notes-ready': { notesRevision: row.notes_revision },
    'session.failed': { code: row.error_code },
  };
  const { session_id: sessionId, partner_appointment_id: partnerAppointmentId, state } = row;
  const data = { sessionId, partnerAppointmentId, state, aiNotesEnabled, ...more[type] };
  return { type, subject: `sessions/${row.id}`, data };
}

/** What each event of the platform is called in the feed. */
const TYPE_OF: Record<SessionEventType, SessionFeedEventType> = {
  SESSION_CREATED: 'session.created',
  SESSION_PROCESSING_STARTED: 'session.processing-started',
  SESSION_PROCESSING_NOTES_COMPLETED: 'session.notes-completed',
  SESSION_PROCESSING_COMPLETED: 'session.completed',
  SESSION_PROCESSING_FAILED: 'session.failed',
};

/**
 * What the EHR is told of an event, whether the session can be fetched or not: of what happens once in a session's life
 * (creation and completion) once, of anything else each time, for a repeat may be another generation of notes. A session
 * of which any event comes first is a new one.
 *
 * @param known what is on record of the session
 */
export function feedEventsOf(
  { eventType, aiNotesEnabled }: SessionEvent,
  known: Pick<EventView, 'event_state'> & { is_new: boolean },
): NotedNews[] {
  const created: NotedNews[] = known.is_new ? [{ type: 'session.created', aiNotesEnabled }] : [];
  const isTold = eventType === 'SESSION_PROCESSING_COMPLETED' && known.event_state === 'Done';
  if (eventType === 'SESSION_CREATED' || isTold) return created;
  return [...created, { type: TYPE_OF[eventType], aiNotesEnabled }];
}
