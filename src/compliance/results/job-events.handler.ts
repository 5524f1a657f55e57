import { Injectable } from '@nestjs/common';
import type pg from 'pg';
import { Feed } from '../../feed/feed.js';
import type { ProcessingEventType } from '../../platform/contract/wire-types.js';
import { COMPLIANCE_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import {
  type EventHandler,
  type Handled,
  HandlesEvents,
  type InboxEvent,
} from '../../webhooks/process/event-handlers.js';
import { JobFeedEvents } from '../model/job-feed-events.js';
import { COMPLIANCE_EVENT_TYPES, jobEndOf, jobIdOf, SMART_EDIT_EVENT_TYPES } from '../model/job-row.js';
import { JobEventsRepository } from './job-events.repository.js';

/** Records how compliance jobs ended; their results are fetched afterwards. */
@Injectable()
@HandlesEvents(...COMPLIANCE_EVENT_TYPES)
export class ComplianceEventsHandler implements EventHandler {
  constructor(
    private readonly jobs: JobEventsRepository,
    private readonly feedEvents: JobFeedEvents,
    private readonly notifier: QueueNotifier,
  ) {}

  async handle({ eventType, body }: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    await this.jobs.recordComplianceEnd(tx, jobIdOf(body), jobEndOf(eventType as ProcessingEventType));
    return 'processed';
  }

  async afterCommit(): Promise<void> {
    this.notifier.notify(COMPLIANCE_QUEUE, 'ended');
    await this.feedEvents.publish();
  }
}

/** Records how smart edit jobs ended, and publishes it. */
@Injectable()
@HandlesEvents(...SMART_EDIT_EVENT_TYPES)
export class SmartEditEventsHandler implements EventHandler {
  constructor(
    private readonly jobs: JobEventsRepository,
    private readonly feed: Feed,
  ) {}

  async handle({ eventType, body }: InboxEvent, tx: pg.PoolClient): Promise<Handled> {
    const jobId = jobIdOf(body);
    const end = jobEndOf(eventType as ProcessingEventType);
    if (await this.jobs.recordSmartEditEnd(tx, jobId, end)) {
      const type = end === 'Completed' ? 'smart-edit.completed' : 'smart-edit.failed';
      await this.feed.append(tx, { type, subject: `smart-edit/jobs/${encodeURIComponent(jobId)}`, data: { jobId } });
    }
    return 'processed';
  }
}
