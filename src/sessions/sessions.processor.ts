import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { type Ring, SESSION_QUEUE } from '../queue/backend/queue-names.js';
import { answered } from '../queue/notifier/deduplication-key.js';
import { Sweep } from '../queue/notifier/poller.js';
import { SessionNews } from './model/feed-news.js';
import { ProcessingRefresher } from './processing/processing-refresher.js';
import { SessionRefresher } from './refresh/session-refresher.js';

/** Milliseconds between two looks for rows whose bell was lost. */
const SWEEP_MS = 1_000;

/** Dispatches the doorbell of sessions. */
@Processor(SESSION_QUEUE)
export class SessionsProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  constructor(
    private readonly sessions: SessionRefresher,
    private readonly processing: ProcessingRefresher,
    private readonly news: SessionNews,
    private readonly sweep: Sweep,
  ) {
    super();
  }

  onModuleInit(): void {
    this.sweep.every(SWEEP_MS, 'sessions', async () => {
      this.wake();
      await this.news.tell();
    });
  }

  async process(job: Job<Ring>): Promise<void> {
    await answered(job);
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
