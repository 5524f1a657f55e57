import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { errorTrace } from '../http/error-trace.js';
import { answered } from '../queue/answered.js';
import { type Ring, SESSION_QUEUE } from '../queue/queue-names.js';
import { Sweep } from '../queue/sweep.js';
import { ProcessingRefresher } from './processing-refresher.js';
import { SessionNews } from './session-news.js';
import { SessionRefresher } from './session-refresher.js';

/** Fetches that one process has under way at most, beside the sweep's. */
const CONCURRENCY = 4;

/** Milliseconds between two looks for rows whose bell was lost. */
const SWEEP_MS = 2_000;

/** Dispatches the doorbell of sessions. */
@Processor(SESSION_QUEUE, { concurrency: CONCURRENCY })
export class SessionsProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(SessionsProcessor.name);

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
      await this.processing.lookAround();
      await this.sessions.lookAround();
      await this.news.tell();
    });
  }

  async process(job: Job<Ring>): Promise<void> {
    await answered(job);
    // Errors stay here: the queue would keep their messages, which may quote a row. The sweep comes again.
    try {
      await this.processing.run();
      await this.sessions.run();
    } catch (error) {
      this.log.warn({ msg: 'the refreshing of sessions was interrupted', ...errorTrace(error) });
    }
  }

  async onModuleDestroy(): Promise<void> {
    this.sessions.stop();
    this.processing.stop();
    await this.worker.close();
  }
}
