import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { Feed } from '../feed/feed.js';
import { SESSION_EVENT_TYPES, type SessionEventType } from '../platform/contract/wire-types.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { type EventHandler, EventHandlers, type Handled, type InboxEvent } from '../webhooks/process/event-handlers.js';
import { RequestOutcomes } from './create/request-outcomes.repository.js';
import { SessionEventsRepository } from './refresh/session-events.repository.js';

type SessionsEventType = SessionEventType | 'PROCESSING_SESSION_FINISHED' | 'PROCESSING_SESSION_NOTES_FINISHED';

/**
 * Merges events into their sessions, known or not; each one causes another fetch. Events of the Processing API cause a
 * lookup of their session, and are published.
 */
@Injectable()
export class SessionEventsHandler implements EventHandler<InboxEvent<SessionsEventType>> {
  constructor(
    private readonly prisma: PrismaService,
    private readonly events: SessionEventsRepository,
    private readonly requests: RequestOutcomes,
    private readonly feed: Feed,
    private readonly notifier: QueueNotifier,
    handlers: EventHandlers,
  ) {
    handlers.register(this, ...SESSION_EVENT_TYPES, 'PROCESSING_SESSION_FINISHED', 'PROCESSING_SESSION_NOTES_FINISHED');
  }

  private readonly notify = () => this.notifier.notify('sessions');

  async handle(event: InboxEvent<SessionsEventType>, tx: Tx): Promise<Handled> {
    if (event.eventType === 'PROCESSING_SESSION_FINISHED') await this.finished(event, tx);
    else if (event.eventType === 'PROCESSING_SESSION_NOTES_FINISHED') await this.notesFinished(event, tx);
    else return this.handleSessionEvent(event, tx);
    this.prisma.afterCommit(tx, this.notify);
    return 'processed';
  }

  /** An event of an unknown session waits while a request that it may belong to is in flight. */
  private async handleSessionEvent(event: InboxEvent<SessionEventType>, tx: Tx): Promise<Handled> {
    const { sessionId, providerUserId, partnerAppointmentId, receivedAt, waitingSince } = event;
    const sql = this.prisma.sql(tx);
    const isNamed = partnerAppointmentId != null && providerUserId !== null;
    const names = { providerUserId: providerUserId ?? '', partnerAppointmentId: partnerAppointmentId ?? '' };
    const match = isNamed ? await this.requests.matching(sql, { ...names, receivedAt }) : undefined;
    const isKnown = match !== undefined && (await this.events.isKnown(sql, sessionId));
    if (match?.inFlight && !isKnown) return 'waiting';
    if (match && !isKnown) await this.requests.settleByEvent(sql, match.request, sessionId);
    await this.events.recordEvent(sql, event, waitingSince);
    if (match && isKnown && !match.inFlight) await this.requests.settleByEvent(sql, match.request);
    this.prisma.afterCommit(tx, this.notify);
    return 'processed';
  }

  private async finished({ processingId }: InboxEvent<'PROCESSING_SESSION_FINISHED'>, tx: Tx): Promise<void> {
    await this.events.recordProcessing(this.prisma.sql(tx), processingId);
    const subject = `processing-sessions/${encodeURIComponent(processingId)}`;
    await this.feed.append(tx, { type: 'processing.finished', subject, data: { processingId } });
  }

  private async notesFinished(
    { deliveryId, processingId, sessionId, waitingSince }: InboxEvent<'PROCESSING_SESSION_NOTES_FINISHED'>,
    tx: Tx,
  ): Promise<void> {
    if (sessionId !== null) await this.events.recordMention(this.prisma.sql(tx), sessionId, waitingSince);
    if (processingId !== null) await this.events.recordProcessing(this.prisma.sql(tx), processingId);
    const subject = `webhook-deliveries/${deliveryId}`;
    await this.feed.append(tx, { type: 'processing.notes-finished', subject, data: { processingId, sessionId } });
  }
}
