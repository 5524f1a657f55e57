import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { prepared } from '../../database/database.js';
import { PrismaService } from '../../database/prisma.service.js';
import { Feed } from '../../feed/feed.js';
import { type FeedType } from '../../feed/feed-types.js';
import { SubjectIds } from '../../feed/subject-ids.js';
import type { SessionEvent, SessionEventType } from '../../platform/contract/wire-types.js';
import { SHOWN_PEOPLE } from './session-columns.js';
import { type SessionRow, STATE_OF } from './session-row.js';

/** An event of a session, with the state that it reports. */
interface SessionFeedEvent {
  type: FeedType & `session.${string}`;
  state: string;
  /** From the platform's event; defaults to the value in the session's row. */
  aiNotesEnabled?: boolean | null;
  code?: string | null;
  notesRevision?: number;
  /** Parts of the answer that could not be read completely. */
  incomplete?: string[];
}

/** The fields of a session that its feed events show. */
interface Published extends Pick<SessionRow, 'sessionId' | 'partnerAppointmentId' | 'aiNotesEnabled'> {
  shownId: string;
  provider: string | null;
  clients: string[];
}

/** What events show of a session. */
const PUBLISHED = `
  SELECT shown_id AS "shownId", session_id AS "sessionId", partner_appointment_id AS "partnerAppointmentId",
    ai_notes_enabled AS "aiNotesEnabled", ${SHOWN_PEOPLE} FROM sessions t WHERE id = $1`;

/** Publishes the events of sessions in the transactions that cause them. */
@Injectable()
export class SessionFeed {
  constructor(
    private readonly prisma: PrismaService,
    private readonly feed: Feed,
    subjects: SubjectIds,
  ) {
    subjects.registerRows('sessions', 'sessions');
  }

  /** @param id of the session's row, after its changes */
  async publish(tx: PoolClient, id: string, events: readonly SessionFeedEvent[]): Promise<void> {
    if (events.length === 0) return;
    const { rows } = await tx.query<Published>(prepared(PUBLISHED, [id]));
    for (const { shownId, ...shown } of rows) {
      for (const { type, ...event } of events) {
        await this.feed.append(await this.prisma.in(tx), {
          type,
          subject: `sessions/${shownId}`,
          data: { ...shown, ...event },
        });
      }
    }
  }
}

/** The feed's name of each platform event. */
const TYPE_OF: Record<SessionEventType, SessionFeedEvent['type']> = {
  SESSION_CREATED: 'session.created',
  SESSION_PROCESSING_STARTED: 'session.processing-started',
  SESSION_PROCESSING_NOTES_COMPLETED: 'session.notes-completed',
  SESSION_PROCESSING_COMPLETED: 'session.completed',
  SESSION_PROCESSING_FAILED: 'session.failed',
};

/**
 * The feed events of a platform event. Creation, completion and failure are published once per session, any other event
 * each time, because a repeat may announce another generation of notes. The first event of a session also publishes its
 * creation.
 *
 * @param known the session's row before the event
 */
export function feedEventsOf(
  { eventType, aiNotesEnabled }: SessionEvent,
  known: Pick<SessionRow, 'eventState' | 'failurePublished'> & { isNew: boolean },
): SessionFeedEvent[] {
  const created: SessionFeedEvent = { type: 'session.created', state: 'InProgress', aiNotesEnabled };
  const isPublished =
    eventType === 'SESSION_CREATED' ||
    (eventType === 'SESSION_PROCESSING_COMPLETED' && known.eventState === 'Done') ||
    (eventType === 'SESSION_PROCESSING_FAILED' && known.failurePublished);
  const reported: SessionFeedEvent = { type: TYPE_OF[eventType], state: STATE_OF[eventType], aiNotesEnabled };
  return [...(known.isNew ? [created] : []), ...(isPublished ? [] : [reported])];
}

/**
 * The feed events of a fetched answer. A failure is published once, by its event or by the first answer that shows it.
 *
 * @param fetched.notesRevision of the session after the answer
 */
export function feedEventsOfFetch(
  known: Pick<SessionRow, 'failurePublished' | 'incomplete'>,
  fetched: {
    state: string;
    notesChanged: boolean;
    notesRevision: number;
    incomplete: string[];
    code: string | null;
  },
): SessionFeedEvent[] {
  const { state, notesRevision, incomplete, code } = fetched;
  const isReady = fetched.notesChanged || incomplete.some((part) => !known.incomplete.includes(part));
  return [
    ...(isReady ? [{ type: 'session.notes-ready', state, notesRevision, incomplete } as const] : []),
    ...(state === 'Error' && !known.failurePublished ? [{ type: 'session.failed', state, code } as const] : []),
  ];
}
