import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy } from '@nestjs/common';
import type { Job } from 'bullmq';
import { IMPORT_QUEUE, type Notification } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/queue-notifier.js';
import { ImportRunner } from './import-runner.service.js';

/** Runs the import runner when its queue is notified. */
@Processor(IMPORT_QUEUE)
export class ImportsProcessor extends WorkerHost implements OnModuleDestroy {
  constructor(private readonly runner: ImportRunner) {
    super();
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.runner.run();
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker.close();
  }
}
