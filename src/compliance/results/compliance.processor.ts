import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { COMPLIANCE_QUEUE, type Notification } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/deduplication-key.js';
import { Poller } from '../../queue/notifier/poller.js';
import { JobFeedEvents } from '../model/job-feed-news.js';
import { ResultRefresher } from './result-refresher.js';

/** Look-ups that one process has under way at most, beside the poller's. */
const CONCURRENCY = 2;

/** Milliseconds between two looks for jobs whose notification was lost, and for news whose teller died. */
const POLL_MS = 2_000;

/** Dispatches the notifier of compliance jobs. */
@Processor(COMPLIANCE_QUEUE, { concurrency: CONCURRENCY })
export class ComplianceProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  constructor(
    private readonly refresher: ResultRefresher,
    private readonly news: JobFeedEvents,
    private readonly poller: Poller,
  ) {
    super();
  }

  onModuleInit(): void {
    this.poller.every(POLL_MS, 'compliance', () => this.refresher.lookAround());
    this.poller.every(POLL_MS, 'job-news', () => this.news.tell());
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.refresher.run();
  }

  async onModuleDestroy(): Promise<void> {
    this.refresher.stop();
    await this.worker.close();
  }
}
