import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Job } from 'bullmq';
import { IMPORT_QUEUE, type Notification } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/deduplication-key.js';
import { ImportSteps } from './import-steps.service.js';

/** Dispatches the notifier of imports. */
@Processor(IMPORT_QUEUE)
export class ImportsProcessor extends WorkerHost implements OnModuleDestroy {
  constructor(private readonly steps: ImportSteps) {
    super();
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.steps.prepareAll();
    await this.steps.countAll();
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
