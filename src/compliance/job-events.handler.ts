import { Injectable } from '@nestjs/common';
import type { Tx } from '../database/prisma.service.js';
import { Feed } from '../feed/feed.js';
import type { JobEventType } from '../platform/contract/wire-types.js';
import { type EventHandler, EventHandlers, type Handled, type InboxEvent } from '../webhooks/process/event-handlers.js';
import { afterEvent } from './job-rules.js';
import { JobsRepository } from './jobs.repository.js';

/** How long an event of an unknown job waits for the answers to the submissions in flight. */
const WAIT_MS = 20_000;

/** Records the ends of compliance jobs, known or not, and publishes every event of a smart edit job. */
@Injectable()
export class JobEventsHandler implements EventHandler<InboxEvent<JobEventType>> {
  constructor(
    private readonly jobs: JobsRepository,
    private readonly feed: Feed,
    handlers: EventHandlers,
  ) {
    handlers.register(this, 'COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED');
    handlers.register(this, 'SMART_EDIT_JOB_COMPLETED', 'SMART_EDIT_JOB_FAILED');
  }

  async handle({ eventType, jobId, receivedAt, waitingSince }: InboxEvent<JobEventType>, tx: Tx): Promise<Handled> {
    const end = eventType.endsWith('_COMPLETED') ? 'Completed' : 'Failed';
    if (eventType.startsWith('SMART_EDIT')) {
      const type = end === 'Completed' ? 'smart-edit.completed' : 'smart-edit.failed';
      await this.feed.append(tx, { type, subject: `smart-edit/jobs/${encodeURIComponent(jobId)}`, data: { jobId } });
      return 'processed';
    }
    const [{ hasWaited }] = await tx.$queryRaw<[{ hasWaited: boolean }]>`
      SELECT clock_timestamp() >= ${waitingSince}::timestamptz + ${WAIT_MS} * interval '1 millisecond' AS "hasWaited"`;
    const known = await this.jobs.lockByJobId(tx, jobId);
    if (!known && !hasWaited && (await this.jobs.isSubmitting(tx, receivedAt))) return 'waiting';
    const row = known ?? (await this.jobs.create(tx, jobId));
    const change = afterEvent(row, end, this.jobs.readable, row.now);
    if (change) await this.jobs.save(tx, row, change);
    return 'processed';
  }
}
