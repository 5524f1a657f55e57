import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import { Contract } from '../../platform/contract/contract.js';
import { backoff } from '../../queue/work/backoff.js';
import { Feeder } from '../../queue/work/feeder.js';
import { Host, WORKER } from '../../queue/work/host.js';
import { WorkQueues } from '../../queue/work/work-queues.js';
import { WorkStore } from '../../queue/work/work-store.js';
import { CallGate } from '../fetch/call-gate.js';
import { ProcessingLookups } from './processing-lookups.service.js';
import { ProcessingsRepository } from './processings.repository.js';

/** Maximum lookups in progress in this process. */
const CONCURRENCY = 2;

/** Looks up processing ids: one job names one, and makes at most one call. */
@Processor('processings', WORKER)
export class ProcessingsProcessor extends Host implements OnModuleInit {
  constructor(
    store: WorkStore,
    queues: WorkQueues,
    private readonly feeder: Feeder,
    private readonly contract: Contract,
    private readonly gate: CallGate,
    private readonly rows: ProcessingsRepository,
    private readonly lookups: ProcessingLookups,
  ) {
    super(store, queues.of('processings'), { concurrency: CONCURRENCY });
  }

  onModuleInit(): void {
    this.feeder.feed({ queue: this.queue, due: () => this.due() });
  }

  protected async work(id: string): Promise<boolean> {
    if (this.contract.canCall('getProcessingSession')) await this.lookups.work(id, this.shutdown.signal);
    return false;
  }

  protected postpone(id: string): Promise<void> {
    return this.rows.postpone(id, 'internal', backoff);
  }

  /** Its id is a text of the platform, which the log does not show. */
  protected override logged(): object {
    return {};
  }

  private async due(): Promise<{ id: string }[]> {
    if (!this.contract.canCall('getProcessingSession')) return [];
    const rows = await this.rows.due();
    if (rows.length === 0) return rows;
    const { getProcessingSession: gate } = await this.gate.gates('getProcessingSession');
    return gate === 'closed' ? [] : rows.slice(0, gate === 'probe' ? 1 : rows.length);
  }
}
