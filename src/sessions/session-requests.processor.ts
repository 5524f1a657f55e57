import { Processor, WorkerHost } from '@nestjs/bullmq';
import { Logger, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import type { Job } from 'bullmq';
import { errorTrace } from '../http/error-trace.js';
import { answered } from '../queue/answered.js';
import { type Ring, SESSION_REQUEST_QUEUE } from '../queue/queue-names.js';
import { Sweep } from '../queue/sweep.js';
import { RequestSender } from './request-sender.js';

/** Creates that one process has under way at most, beside the sweep's: somebody waits for each. */
const CONCURRENCY = 8;

/** Milliseconds between two looks for requests whose bell was lost, or whose process died. */
const SWEEP_MS = 1_000;

/** Dispatches the doorbell of requests for sessions. */
@Processor(SESSION_REQUEST_QUEUE, { concurrency: CONCURRENCY })
export class SessionRequestsProcessor extends WorkerHost implements OnModuleInit, OnModuleDestroy {
  private readonly log = new Logger(SessionRequestsProcessor.name);

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
    // Errors stay here: the queue would keep their messages, which may quote a row. The sweep comes again.
    try {
      await this.sender.run();
    } catch (error) {
      this.log.warn({ msg: 'the sending of requests for sessions was interrupted', ...errorTrace(error) });
    }
  }

  async onModuleDestroy(): Promise<void> {
    this.sender.stop();
    await this.worker.close();
  }
}
