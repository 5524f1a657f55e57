import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import { Feeder } from '../../queue/work/feeder.js';
import { Host, WORKER } from '../../queue/work/host.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { WorkStore } from '../../queue/work/work-store.js';
import { ImportsRepository } from '../model/imports.repository.js';
import { ImportSteps } from './import-steps.service.js';

/** Imports that a process works on at a time: a plan may take minutes, and another import does not wait for it. */
const CONCURRENCY = 2;

/** Works on imports: one job names an import, and does its next step. */
@Processor('imports', WORKER)
export class ImportsProcessor extends Host implements OnModuleInit {
  constructor(
    store: WorkStore,
    queues: WorkQueues,
    private readonly feeder: Feeder,
    private readonly imports: ImportsRepository,
    private readonly steps: ImportSteps,
  ) {
    super(store, queues.of('imports'), { concurrency: CONCURRENCY });
  }

  onModuleInit(): void {
    this.feeder.feed({ queue: this.queue, due: () => this.imports.due() });
  }

  protected work(id: string): Promise<boolean> {
    return this.steps.next(id);
  }

  protected async postpone(id: string): Promise<void> {
    await this.imports.postpone(id);
  }
}
