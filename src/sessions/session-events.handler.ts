import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Feed } from '../feed/feed.js';
import { Contract } from '../platform/contract/contract.js';
import { readPointer } from '../platform/contract/json-pointer.js';
import {
  isPlatformId,
  platformKey,
  SESSION_EVENT_TYPES,
  type SessionEvent,
  type SessionEventType,
} from '../platform/contract/wire-types.js';
import { SpellingsRepository } from '../platform/http/spellings.repository.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { type EventHandler, EventHandlers, type Handled, type InboxEvent } from '../webhooks/process/event-handlers.js';
import { RequestOutcomes } from './create/request-outcomes.repository.js';
import { SessionEventsRepository } from './refresh/session-events.repository.js';

/** The location of the id in PROCESSING_SESSION_FINISHED (spec, Processing API events). */
const FINISHED = { processingId: '/payload/processingId' };

/**
 * Merges events into their sessions, known or not; each one causes another fetch. Events of the Processing API cause a
 * lookup of their session, and are published.
 */
@Injectable()
export class SessionEventsHandler implements EventHandler {
  constructor(
    private readonly contract: Contract,
    private readonly spellings: SpellingsRepository,
    private readonly events: SessionEventsRepository,
    private readonly requests: RequestOutcomes,
    private readonly feed: Feed,
    private readonly notifier: QueueNotifier,
    handlers: EventHandlers,
  ) {
    handlers.register(this, ...SESSION_EVENT_TYPES, 'PROCESSING_SESSION_FINISHED', 'PROCESSING_SESSION_NOTES_FINISHED');
  }

  readonly afterCommit = () => this.notifier.notify('sessions', 'due');

  async handle(event: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    if (event.eventType === 'PROCESSING_SESSION_FINISHED') await this.finished(event, tx);
    else if (event.eventType === 'PROCESSING_SESSION_NOTES_FINISHED') await this.notesFinished(event, tx);
    else return this.handleSessionEvent(readSessionEvent(event.eventType as SessionEventType, event.body), event, tx);
    return 'processed';
  }

  subjectOf(body: Record<string, unknown>): string | null {
    const { sessionId, processingId } = this.notesFinishedIds(body);
    const subject = sessionId ?? processingId;
    return subject && platformKey(subject);
  }

  /** An event of an unknown session waits while a request that it may belong to is in flight. */
  private async handleSessionEvent(
    event: SessionEvent,
    { receivedAt, waitingSince }: InboxEvent,
    tx: pg.PoolClient,
  ): Promise<Handled> {
    const { sessionId, providerUserId, partnerAppointmentId } = event;
    const isNamed = partnerAppointmentId != null && providerUserId !== null;
    const names = { providerUserId: providerUserId ?? '', partnerAppointmentId: partnerAppointmentId ?? '' };
    const match = isNamed ? await this.requests.matching(tx, { ...names, receivedAt }) : undefined;
    const isKnown = match !== undefined && (await this.events.isKnown(tx, sessionId));
    if (match?.inFlight && !isKnown) return 'waiting';
    if (match && !isKnown) await this.requests.settleByEvent(tx, match.request, sessionId);
    await this.events.recordEvent(tx, event, waitingSince);
    if (match && isKnown && !match.inFlight) await this.requests.settleByEvent(tx, match.request);
    return 'processed';
  }

  private async finished({ body, waitingSince }: InboxEvent, tx: pg.PoolClient): Promise<void> {
    const { processingId } = await this.recordMentions(namedIds(body, FINISHED), waitingSince, tx);
    const subject = `processing-sessions/${encodeURIComponent(processingId ?? '')}`;
    await this.feed.append(tx, { type: 'processing.finished', subject, data: { processingId } });
  }

  private async notesFinished({ deliveryId, body, waitingSince }: InboxEvent, tx: pg.PoolClient): Promise<void> {
    const { processingId, sessionId } = await this.recordMentions(this.notesFinishedIds(body), waitingSince, tx);
    const subject = `webhook-deliveries/${deliveryId}`;
    await this.feed.append(tx, { type: 'processing.notes-finished', subject, data: { processingId, sessionId } });
  }

  private notesFinishedIds(body: unknown): NamedIds {
    return namedIds(body, this.contract.events.PROCESSING_SESSION_NOTES_FINISHED);
  }

  private async recordMentions(named: NamedIds, at: Date, tx: pg.PoolClient): Promise<NamedIds> {
    for (const id of Object.values(named)) if (id !== null) await this.spellings.learnIfNew(tx, id);
    const ids = { processingId: keyOf(named.processingId), sessionId: keyOf(named.sessionId) };
    if (ids.sessionId !== null) await this.events.recordMention(tx, ids.sessionId, at);
    if (ids.processingId !== null) await this.events.recordProcessing(tx, ids.processingId);
    return ids;
  }
}

/** Reads the fields of a session event (spec, Session events); optional fields of another type count as absent. */
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

/** The ids in an event of the Processing API. */
interface NamedIds {
  processingId: string | null;
  sessionId: string | null;
}

const keyOf = (id: string | null): string | null => id && platformKey(id);

/**
 * Reads the ids of an event only where the contract file locates them, because a field of the same name may mean something
 * else.
 *
 * @param body any JSON value
 * @param rule JSON Pointers; if undefined, no ids are read
 */
export function namedIds(body: unknown, rule: Partial<Record<keyof NamedIds, string>> = {}): NamedIds {
  const idAt = (pointer: string | undefined) => {
    const value = pointer === undefined ? undefined : readPointer(body, pointer);
    return isPlatformId(value) ? value : null;
  };
  return { processingId: idAt(rule.processingId), sessionId: idAt(rule.sessionId) };
}
