import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { SESSION_EVENT_TYPES, type SessionEvent, type SessionEventType } from '../platform/contract/wire-types.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { type EventHandler, type Handled, HandlesEvents, type InboxEvent } from '../webhooks/process/event-handlers.js';
import { SessionRequestsRepository } from './create/session-requests.repository.js';
import { DEBOUNCE_MS } from './model/apply-answer.js';
import { SessionFeedEvents } from './model/session-feed-events.js';
import { SessionEventsRepository } from './refresh/session-events.repository.js';

/** Merges SESSION_* events into their sessions, known or not; each one makes another fetch. */
@Injectable()
@HandlesEvents(...SESSION_EVENT_TYPES)
export class SessionEventsHandler implements EventHandler {
  constructor(
    private readonly events: SessionEventsRepository,
    private readonly requests: SessionRequestsRepository,
    private readonly notifier: QueueNotifier,
    private readonly feedEvents: SessionFeedEvents,
  ) {}

  async handle({ eventType, body, receivedAt }: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    const event = readSessionEvent(eventType as SessionEventType, body);
    const id = await this.events.recordEvent(tx, event);
    const { sessionId, providerUserId, partnerAppointmentId } = event;
    if (partnerAppointmentId != null && providerUserId !== null) {
      await this.requests.recordEvidence(tx, { id, sessionId, providerUserId, partnerAppointmentId, receivedAt });
    }
    return 'processed';
  }

  async afterCommit(): Promise<void> {
    this.notifier.notify('sessions', 'due', DEBOUNCE_MS);
    await this.feedEvents.publish();
  }
}

/** Reads the fields of a session event (spec, Session events); what is optional and of another type counts as absent. */
function readSessionEvent(eventType: SessionEventType, body: Record<string, unknown>): SessionEvent {
  const { sessionId, providerUserId, partnerAppointmentId, aiNotesEnabled } = body;
  return {
    eventType,
    sessionId: String(sessionId),
    providerUserId: typeof providerUserId === 'string' ? providerUserId : null,
    partnerAppointmentId: typeof partnerAppointmentId === 'string' ? partnerAppointmentId : null,
    aiNotesEnabled: typeof aiNotesEnabled === 'boolean' ? aiNotesEnabled : null,
  };
}
