import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { type Notification, SESSION_REQUEST_QUEUE } from '../../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../../queue/notifier/deduplication-key.js';
import { Poller } from '../../queue/notifier/poller.js';
import { RequestSender } from './request-sender.js';

/** Creates that one process has under way at most, beside the poller's: somebody waits for each. */
const CONCURRENCY = 8;

/** Milliseconds between two looks for requests whose notification was lost, or whose process died. */
const POLL_MS = 1_000;

/** Dispatches the notifier of requests for sessions. */
@Processor(SESSION_REQUEST_QUEUE, { concurrency: CONCURRENCY })
export class SessionRequestsProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  constructor(
    private readonly sender: RequestSender,
    private readonly poller: Poller,
  ) {
    super();
  }

  onModuleInit(): void {
    this.poller.every(POLL_MS, 'session-requests', () => this.sender.lookAround());
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    await this.sender.run();
  }

  async onModuleDestroy(): Promise<void> {
    this.sender.stop();
    await this.worker.close();
  }
}
