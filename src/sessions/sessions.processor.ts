import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { type Notification, SESSION_QUEUE } from '../queue/backend/queue-names.js';
import { releaseDeduplicationKey } from '../queue/notifier/deduplication-key.js';
import { Poller } from '../queue/notifier/poller.js';
import { SessionFeedEvents } from './model/feed-news.js';
import { ProcessingRefresher } from './processing/processing-refresher.js';
import { SessionRefresher } from './refresh/session-refresher.js';

/** Milliseconds between two looks for rows whose notification was lost. */
const POLL_MS = 1_000;

/** Dispatches the notifier of sessions. */
@Processor(SESSION_QUEUE)
export class SessionsProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  constructor(
    private readonly sessions: SessionRefresher,
    private readonly processing: ProcessingRefresher,
    private readonly news: SessionFeedEvents,
    private readonly poller: Poller,
  ) {
    super();
  }

  onModuleInit(): void {
    this.poller.every(POLL_MS, 'sessions', async () => {
      this.wake();
      await this.news.tell();
    });
  }

  async process(job: Job<Notification>): Promise<void> {
    await releaseDeduplicationKey(job);
    this.wake();
  }

  async onModuleDestroy(): Promise<void> {
    this.sessions.stop();
    this.processing.stop();
    await this.worker.close();
    await Promise.all([this.sessions.finished(), this.processing.finished()]);
  }

  /** Each kind of look-up has its own places: a platform that hangs in one holds up no other. */
  private wake(): void {
    this.sessions.wake();
    this.processing.wake();
  }
}
