import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Job } from 'bullmq';
import { type Ring, WEBHOOK_INBOX_QUEUE } from '../../queue/backend/queue-names.js';
import { answered } from '../../queue/notifier/deduplication-key.js';
import { InboxDrain } from './inbox-worker.js';

/** Answers the inbox's doorbell. */
@Processor(WEBHOOK_INBOX_QUEUE, { concurrency: 1 })
export class InboxProcessor extends WorkerHost implements OnModuleDestroy {
  constructor(private readonly drain: InboxDrain) {
    super();
  }

  override async process(job: Job<Ring>): Promise<void> {
    await answered(job);
    await this.drain.run();
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
