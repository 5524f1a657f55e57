import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Feed } from '../../feed/feed.js';
import { Contract } from '../../platform/contract/contract.js';
import { readPointer } from '../../platform/contract/json-pointer.js';
import { isPlatformId } from '../../platform/contract/wire-types.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import {
  type EventHandler,
  type Handled,
  HandlesEvents,
  type InboxEvent,
} from '../../webhooks/process/event-handlers.js';
import { DEBOUNCE_MS } from '../model/apply-answer.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { SessionSeal } from '../model/session-seal.js';
import { SessionEventsRepository } from '../refresh/session-events.repository.js';
import { dueAfterDebounce } from '../refresh/wanted-refreshes.repository.js';

/** Where PROCESSING_SESSION_FINISHED names its subject (spec, Processing API events). */
const FINISHED = { processingId: '/payload/processingId' };

/** Follows the events of the Processing API to the sessions that they are about and publishes them. */
@Injectable()
@HandlesEvents('PROCESSING_SESSION_FINISHED', 'PROCESSING_SESSION_NOTES_FINISHED')
export class ProcessingEventsHandler implements EventHandler {
  constructor(
    private readonly contract: Contract,
    private readonly events: SessionEventsRepository,
    private readonly feed: Feed,
    private readonly notifier: QueueNotifier,
    private readonly feedEvents: SessionFeedEvents,
    private readonly seal: SessionSeal,
  ) {}

  async handle(event: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    const isFinished = event.eventType === 'PROCESSING_SESSION_FINISHED';
    const ids = namedIds(event.body, isFinished ? FINISHED : this.contract.events.PROCESSING_SESSION_NOTES_FINISHED);
    const { processingId, sessionId } = ids;
    if (sessionId !== null) await this.events.recordMention(tx, sessionId);
    if (processingId !== null) await makeDue(tx, processingId);
    if (isFinished) {
      const subject = `processing-sessions/${encodeURIComponent(processingId ?? '')}`;
      await this.feed.append(tx, { type: 'processing.finished', subject, data: { processingId } });
      return 'processed';
    }
    // The spec shows nothing of the payload: what it says is known to the EHR and the platform alone.
    const { deliveryId, body, receivedAt } = event;
    await tx.query(
      `INSERT INTO processing_notices (delivery_id, payload, processing_id, session_id, received_at)
       VALUES ($1, $2, $3, $4, $5) ON CONFLICT (delivery_id) DO NOTHING`,
      [deliveryId, this.seal.notice.seal(deliveryId, body), processingId, sessionId, receivedAt],
    );
    const subject = `processing-notices/${encodeURIComponent(deliveryId)}`;
    await this.feed.append(tx, { type: 'processing.notes-finished', subject, data: { ...ids } });
    return 'processed';
  }

  async afterCommit(): Promise<void> {
    this.notifier.notify('sessions', 'due', DEBOUNCE_MS);
    await this.feedEvents.publish();
  }
}

/** Makes a processing session due, which is made when it is not known. */
async function makeDue(tx: pg.PoolClient, processingId: string): Promise<void> {
  await tx.query(
    `INSERT INTO processing_sessions AS known (processing_id, wanted_generation, due_at)
     VALUES ($1, 1, clock_timestamp() + $2 * interval '1 millisecond')
     ON CONFLICT (processing_id) DO UPDATE SET wanted_generation = known.wanted_generation + 1,
       updated_at = clock_timestamp(), due_at = ${dueAfterDebounce('known')}`,
    [processingId, DEBOUNCE_MS],
  );
}

/** What an event names whose payload the spec does not show. */
interface NamedIds {
  processingId: string | null;
  sessionId: string | null;
}

/**
 * Reads the ids of an event where the contract file says that they stand, and nowhere else: a field of the same name
 * may mean something else.
 *
 * @param body any JSON value
 * @param rule JSON Pointers; undefined: nothing is known of the event, so that it names nothing
 */
export function namedIds(body: unknown, rule: Partial<Record<keyof NamedIds, string>> = {}): NamedIds {
  const idAt = (pointer: string | undefined) => {
    const value = pointer === undefined ? undefined : readPointer(body, pointer);
    return isPlatformId(value) ? value : null;
  };
  return { processingId: idAt(rule.processingId), sessionId: idAt(rule.sessionId) };
}
