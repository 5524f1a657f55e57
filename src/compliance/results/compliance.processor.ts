import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { COMPLIANCE_QUEUE, type Ring } from '../../queue/backend/queue-names.js';
import { answered } from '../../queue/notifier/deduplication-key.js';
import { Sweep } from '../../queue/notifier/poller.js';
import { JobNews } from '../model/job-feed-news.js';
import { ResultRefresher } from './result-refresher.js';

/** Look-ups that one process has under way at most, beside the sweep's. */
const CONCURRENCY = 2;

/** Milliseconds between two looks for jobs whose bell was lost, and for news whose teller died. */
const SWEEP_MS = 2_000;

/** Dispatches the doorbell of compliance jobs. */
@Processor(COMPLIANCE_QUEUE, { concurrency: CONCURRENCY })
export class ComplianceProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  constructor(
    private readonly refresher: ResultRefresher,
    private readonly news: JobNews,
    private readonly sweep: Sweep,
  ) {
    super();
  }

  onModuleInit(): void {
    this.sweep.every(SWEEP_MS, 'compliance', () => this.refresher.lookAround());
    this.sweep.every(SWEEP_MS, 'job-news', () => this.news.tell());
  }

  async process(job: Job<Ring>): Promise<void> {
    await answered(job);
    await this.refresher.run();
  }

  async onModuleDestroy(): Promise<void> {
    this.refresher.stop();
    await this.worker.close();
  }
}
