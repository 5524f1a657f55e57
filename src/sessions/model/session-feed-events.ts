import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { Database } from '../../database/database.js';
import type { PendingFeedEvents } from '../../feed/feed.js';
import { Feed, PendingEventsPublisher } from '../../feed/feed.js';
import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import { ifReadable } from '../../vault/unreadable-value.js';
import { NO_FACTS, plainCode } from './session-facts.js';
import type { SessionRow } from './session-row.js';
import { SessionSeal } from './session-seal.js';

/** A request in flight that may be for this session; its answer decides under which id the EHR knows the session. */
const MATCHING_REQUEST_IN_FLIGHT = `
  SELECT 1 FROM session_requests r
  WHERE r.correlation_id = sessions.event_appointment_id AND r.provider_user_id = sessions.event_provider_user_id
    AND r.state IN ('Requested', 'Unknown') AND r.lease_owner IS NOT NULL`;

type SessionFeedEventType = PendingFeedEvents['type'] & `session.${string}`;

/** A pending event on a session's row. */
interface PendingSessionEvent {
  type: SessionFeedEventType;
  /** From the platform's event; defaults to the value in the session's row. */
  aiNotesEnabled?: boolean | null;
}

/** The feed events of sessions. */
@Injectable()
export class SessionFeedEvents extends PendingEventsPublisher {
  constructor(
    database: Database,
    feed: Feed,
    private readonly seal: SessionSeal,
  ) {
    super(database, feed);
  }

  /** The poll that publishes events whose publication was interrupted or had to wait. */
  readonly poll = this.pollOf('session feed events', 'sessions');

  /** Adds pending events to a session's row, which must be locked. */
  async add(tx: PoolClient, id: string, events: readonly PendingSessionEvent[]): Promise<void> {
    if (events.length === 0) return;
    await tx.query(
      `UPDATE sessions SET pending_events = pending_events || $2::text[],
         pending_events_at = coalesce(pending_events_at, clock_timestamp()) WHERE id = $1`,
      [id, events.map((event) => JSON.stringify(event))],
    );
  }

  protected override async take(tx: PoolClient, limit: number): Promise<PendingFeedEvents[][]> {
    const { rows } = await tx.query<SessionRow>(
      `SELECT * FROM sessions
       WHERE pending_events_at IS NOT NULL AND NOT EXISTS (${MATCHING_REQUEST_IN_FLIGHT})
       ORDER BY pending_events_at LIMIT $1 FOR UPDATE SKIP LOCKED`,
      [limit],
    );
    if (rows.length === 0) return [];
    await tx.query(`UPDATE sessions SET pending_events = '{}', pending_events_at = NULL WHERE id = ANY($1::uuid[])`, [
      rows.map((row) => row.id),
    ]);
    return rows.map((row) =>
      row.pending_events.map((event) => this.shown(row, JSON.parse(event) as PendingSessionEvent)),
    );
  }

  private shown(
    row: SessionRow,
    { type, aiNotesEnabled = row.ai_notes_enabled }: PendingSessionEvent,
  ): PendingFeedEvents {
    const more: Partial<Record<SessionFeedEventType, () => PendingFeedEvents['data']>> = {
      'session.notes-ready': () => ({ notesRevision: row.notes_revision }),
      'session.failed': () => {
        const { error } = ifReadable(() => this.seal.openFacts(row)) ?? NO_FACTS;
        return { code: error && plainCode(error.code) };
      },
    };
    const { session_id: sessionId, partner_appointment_id: partnerAppointmentId, state } = row;
    const data = { sessionId, partnerAppointmentId, state, aiNotesEnabled, ...more[type]?.() };
    return { type, subject: `sessions/${row.id}`, data };
  }
}

/** The feed's name of each platform event. */
const TYPE_OF: Record<SessionEventType, SessionFeedEventType> = {
  SESSION_CREATED: 'session.created',
  SESSION_PROCESSING_STARTED: 'session.processing-started',
  SESSION_PROCESSING_NOTES_COMPLETED: 'session.notes-completed',
  SESSION_PROCESSING_COMPLETED: 'session.completed',
  SESSION_PROCESSING_FAILED: 'session.failed',
};

/**
 * The feed events of a platform event. Creation and completion are published once per session, any other event each time,
 * because a repeat may announce another generation of notes. The first event of a session also publishes its creation.
 *
 * @param known the session's row
 */
export function feedEventsOf(
  { eventType, aiNotesEnabled }: SessionEvent,
  known: Pick<SessionRow, 'event_state'> & { is_new: boolean },
): PendingSessionEvent[] {
  const created: PendingSessionEvent[] = known.is_new ? [{ type: 'session.created', aiNotesEnabled }] : [];
  const isRepeated = eventType === 'SESSION_PROCESSING_COMPLETED' && known.event_state === 'Done';
  if (eventType === 'SESSION_CREATED' || isRepeated) return created;
  return [...created, { type: TYPE_OF[eventType], aiNotesEnabled }];
}
