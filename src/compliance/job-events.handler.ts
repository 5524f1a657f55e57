import { Injectable } from '@nestjs/common';
import { PrismaService, type Tx } from '../database/prisma.service.js';
import { Feed } from '../feed/feed.js';
import { Contract } from '../platform/contract/contract.js';
import type { JobEventType } from '../platform/contract/wire-types.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { type EventHandler, EventHandlers, type Handled, type InboxEvent } from '../webhooks/process/event-handlers.js';
import { JobOutcomes } from './job-outcomes.repository.js';

/** Records the ends of compliance jobs, known or not, and publishes every event of a smart edit job. */
@Injectable()
export class JobEventsHandler implements EventHandler<InboxEvent<JobEventType>> {
  constructor(
    private readonly prisma: PrismaService,
    private readonly contract: Contract,
    private readonly outcomes: JobOutcomes,
    private readonly feed: Feed,
    private readonly notifier: QueueNotifier,
    handlers: EventHandlers,
  ) {
    handlers.register(this, 'COMPLIANCE_JOB_COMPLETED', 'COMPLIANCE_JOB_FAILED');
    handlers.register(this, 'SMART_EDIT_JOB_COMPLETED', 'SMART_EDIT_JOB_FAILED');
  }

  private readonly notify = () => this.notifier.notify('compliance');

  /** An event of an unknown compliance job waits while it may belong to a submission in flight. */
  async handle({ eventType, jobId, receivedAt }: InboxEvent<JobEventType>, tx: Tx): Promise<Handled> {
    const end = eventType.endsWith('_COMPLETED') ? 'Completed' : 'Failed';
    if (eventType.startsWith('SMART_EDIT')) {
      const type = end === 'Completed' ? 'smart-edit.completed' : 'smart-edit.failed';
      await this.feed.append(tx, { type, subject: `smart-edit/jobs/${encodeURIComponent(jobId)}`, data: { jobId } });
      return 'processed';
    }
    const sql = this.prisma.sql(tx);
    if (await this.outcomes.mayBelongToSubmission(sql, jobId, receivedAt)) return 'waiting';
    await this.outcomes.recordEnd(sql, jobId, end, canReadEnds(this.contract));
    this.prisma.afterCommit(tx, this.notify);
    return 'processed';
  }
}

function canReadEnds(contract: Contract): boolean {
  const { states, response } = contract.operations.getComplianceJob;
  return contract.canCall('getComplianceJob') && states !== undefined && response.state !== undefined;
}
