import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { type EventHandler, type Handled, HandlesEvents, type InboxEvent } from '../webhooks/event-handlers.js';
import { HeardRepository } from './heard.repository.js';
import { ProcessingRepository } from './processing.repository.js';
import { namedIds } from './processing-notice.js';
import { RefreshBell } from './refresh-bell.js';
import { SessionNews } from './session-news.js';

/** Follows the events of the Processing API to the sessions that they are about. */
@Injectable()
@HandlesEvents('PROCESSING_SESSION_FINISHED', 'PROCESSING_SESSION_NOTES_FINISHED')
export class ProcessingEventsHandler implements EventHandler {
  constructor(
    private readonly processing: ProcessingRepository,
    private readonly heard: HeardRepository,
    private readonly bell: RefreshBell,
    private readonly news: SessionNews,
  ) {}

  async handle({ deliveryId, eventType, receivedAt, body }: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    const ids = namedIds(body);
    if (eventType === 'PROCESSING_SESSION_NOTES_FINISHED') {
      await this.processing.keepNotice(tx, { deliveryId, receivedAt, body, ids });
    }
    if (ids.sessionId !== null) await this.heard.hearOf(tx, ids.sessionId);
    if (ids.processingId !== null) await this.processing.hear(tx, ids.processingId);
    return 'processed';
  }

  async afterCommit(): Promise<void> {
    this.bell.ringSoon();
    await this.news.tell();
  }
}
