import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Feed } from '../../feed/feed.js';
import { Contract } from '../../platform/contract/contract.js';
import { readPointer } from '../../platform/contract/json-pointer.js';
import { isPlatformId } from '../../platform/contract/wire-types.js';
import {
  type EventHandler,
  type Handled,
  HandlesEvents,
  type InboxEvent,
} from '../../webhooks/process/event-handlers.js';
import { SessionFeedEvents } from '../model/session-feed-events.js';
import { RefreshNotifier } from '../refresh/refresh-notifier.js';
import { SessionEventsRepository } from '../refresh/session-events.repository.js';
import { ProcessingRepository } from './processing.repository.js';

/** Where PROCESSING_SESSION_FINISHED names its subject (spec, Processing API events). */
const FINISHED = { processingId: '/payload/processingId' };

/** Follows the events of the Processing API to the sessions that they are about and publishes them. */
@Injectable()
@HandlesEvents('PROCESSING_SESSION_FINISHED', 'PROCESSING_SESSION_NOTES_FINISHED')
export class ProcessingEventsHandler implements EventHandler {
  constructor(
    private readonly contract: Contract,
    private readonly processing: ProcessingRepository,
    private readonly events: SessionEventsRepository,
    private readonly feed: Feed,
    private readonly notifier: RefreshNotifier,
    private readonly feedEvents: SessionFeedEvents,
  ) {}

  async handle(event: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    const isFinished = event.eventType === 'PROCESSING_SESSION_FINISHED';
    const rule = isFinished ? FINISHED : this.contract.events.PROCESSING_SESSION_NOTES_FINISHED;
    const ids = namedIds(event.body, rule);
    if (ids.sessionId !== null) await this.events.recordMention(tx, ids.sessionId);
    if (ids.processingId !== null) await this.processing.recordEvent(tx, ids.processingId);
    if (isFinished) await this.tellFinished(tx, ids);
    else await this.tellNotesFinished(tx, event, ids);
    return 'processed';
  }

  async afterCommit(): Promise<void> {
    this.notifier.notifySoon();
    await this.feedEvents.publish();
  }

  private async tellFinished(tx: pg.PoolClient, { processingId }: NamedIds): Promise<void> {
    const subject = `processing-sessions/${encodeURIComponent(processingId ?? '')}`;
    await this.feed.append(tx, { type: 'processing.finished', subject, data: { processingId } });
  }

  /** The event is kept as it came, for what it says is known to the EHR and the platform alone. */
  private async tellNotesFinished(tx: pg.PoolClient, event: InboxEvent, ids: NamedIds): Promise<void> {
    await this.processing.keepNotice(tx, { ...event, ids });
    const subject = `processing-notices/${encodeURIComponent(event.deliveryId)}`;
    await this.feed.append(tx, { type: 'processing.notes-finished', subject, data: { ...ids } });
  }
}

/** What an event names whose payload the spec does not show. */
export interface NamedIds {
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
  return { processingId: idAt(body, rule.processingId), sessionId: idAt(body, rule.sessionId) };
}

function idAt(body: unknown, pointer: string | undefined): string | null {
  const value = pointer === undefined ? undefined : readPointer(body, pointer);
  return isPlatformId(value) ? value : null;
}
