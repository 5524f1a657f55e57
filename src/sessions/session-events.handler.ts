import { Injectable } from '@nestjs/common';
import type { Tx } from '../database/prisma.service.js';
import { Feed } from '../feed/feed.js';
import { SESSION_EVENT_TYPES, type SessionEventType } from '../platform/contract/wire-types.js';
import { type EventHandler, EventHandlers, type Handled, type InboxEvent } from '../webhooks/process/event-handlers.js';
import { RequestClaims } from './create/request-claims.repository.js';
import { applyEvent, type Heard } from './model/apply-event.js';
import { SessionsRepository } from './model/sessions.repository.js';
import { ProcessingsRepository } from './processing/processings.repository.js';

type SessionsEventType = SessionEventType | 'PROCESSING_SESSION_FINISHED' | 'PROCESSING_SESSION_NOTES_FINISHED';

/** Merges events into their sessions, known or not; each one causes another fetch. Those of the Processing API are published. */
@Injectable()
export class SessionEventsHandler implements EventHandler<InboxEvent<SessionsEventType>> {
  constructor(
    private readonly sessions: SessionsRepository,
    private readonly claims: RequestClaims,
    private readonly processings: ProcessingsRepository,
    private readonly feed: Feed,
    handlers: EventHandlers,
  ) {
    handlers.register(this, ...SESSION_EVENT_TYPES, 'PROCESSING_SESSION_FINISHED', 'PROCESSING_SESSION_NOTES_FINISHED');
  }

  async handle(event: InboxEvent<SessionsEventType>, tx: Tx): Promise<Handled> {
    if (event.eventType === 'PROCESSING_SESSION_FINISHED') return this.finished(event, tx);
    if (event.eventType === 'PROCESSING_SESSION_NOTES_FINISHED') return this.notesFinished(event, tx);
    const claimed = await this.claims.rowOf(tx, event, event.receivedAt, event.waitingSince);
    if (claimed === 'waiting') return 'waiting';
    const { row, changes, ...happened } = claimed;
    const heard: Heard = {
      now: row.now,
      since: event.waitingSince,
      news: event.news,
      canFetch: this.sessions.canFetch,
    };
    await this.sessions.save(tx, row, { ...changes, ...applyEvent({ ...row, ...changes }, event, heard) }, happened);
    return 'processed';
  }

  private async finished(event: InboxEvent<'PROCESSING_SESSION_FINISHED'>, tx: Tx): Promise<Handled> {
    const { processingId, news, waitingSince } = event;
    await this.processings.note(tx, processingId, { news, notes: 0, since: waitingSince });
    const subject = `processing-sessions/${encodeURIComponent(processingId)}`;
    await this.feed.append(tx, { type: 'processing.finished', subject, data: { processingId } });
    return 'processed';
  }

  /** Its notes count for the session; if the event names only a processing id, once that is looked up. */
  private async notesFinished(event: InboxEvent<'PROCESSING_SESSION_NOTES_FINISHED'>, tx: Tx): Promise<Handled> {
    const { deliveryId, processingId, sessionId, news, waitingSince: since } = event;
    if (sessionId !== null) await this.processings.mention(tx, sessionId, { news, notes: news, since });
    if (processingId !== null)
      await this.processings.note(tx, processingId, { news, notes: sessionId === null ? news : 0, since });
    const subject = `webhook-deliveries/${deliveryId}`;
    await this.feed.append(tx, { type: 'processing.notes-finished', subject, data: { processingId, sessionId } });
    return 'processed';
  }
}
