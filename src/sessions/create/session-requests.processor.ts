import { Processor, WorkerHost } from '@nestjs/bullmq';
import type { OnModuleDestroy, OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { type Ring, SESSION_REQUEST_QUEUE } from '../../queue/backend/queue-names.js';
import { answered } from '../../queue/notifier/deduplication-key.js';
import { Sweep } from '../../queue/notifier/poller.js';
import { RequestSender } from './request-sender.js';

/** Creates that one process has under way at most, beside the sweep's: somebody waits for each. */
const CONCURRENCY = 8;

/** Milliseconds between two looks for requests whose bell was lost, or whose process died. */
const SWEEP_MS = 1_000;

/** Dispatches the doorbell of requests for sessions. */
@Processor(SESSION_REQUEST_QUEUE, { concurrency: CONCURRENCY })
export class SessionRequestsProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  constructor(
    private readonly sender: RequestSender,
    private readonly sweep: Sweep,
  ) {
    super();
  }

  onModuleInit(): void {
    this.sweep.every(SWEEP_MS, 'session-requests', () => this.sender.lookAround());
  }

  async process(job: Job<Ring>): Promise<void> {
    await answered(job);
    await this.sender.run();
  }

  async onModuleDestroy(): Promise<void> {
    this.sender.stop();
    await this.worker.close();
  }
}
