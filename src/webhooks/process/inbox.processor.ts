import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Job } from 'bullmq';
import { type Notification, WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/deduplication-key.js';
import { InboxWorker } from './inbox-worker.js';

/** Answers the inbox's notifier. */
@Processor(WEBHOOK_INBOX_QUEUE, { concurrency: 1 })
export class InboxProcessor extends WorkerHost implements OnModuleDestroy {
  constructor(private readonly drain: InboxWorker) {
    super();
  }

  override async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.drain.run();
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
