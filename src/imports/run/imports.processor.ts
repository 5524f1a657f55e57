import { Injectable, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import type { ActivatedWorker } from '../../queue/backend/activated-worker.js';
import { IMPORT_QUEUE } from '../../queue/backend/queue-names.js';
import { QueueStore } from '../../queue/backend/queue-store.js';
import { ImportRunner } from './import-runner.service.js';

/** Runs the import runner when its queue is notified. */
@Injectable()
export class ImportsProcessor implements OnApplicationBootstrap, OnModuleDestroy {
  private worker: ActivatedWorker | undefined;

  constructor(
    private readonly store: QueueStore,
    private readonly runner: ImportRunner,
  ) {}

  onApplicationBootstrap(): void {
    this.worker = this.store.work(IMPORT_QUEUE, () => this.runner.run());
  }

  async onModuleDestroy(): Promise<void> {
    await this.worker?.close();
  }
}
