import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import { backoff } from '../queue/work/backoff.js';
import { Feeder } from '../queue/work/feeder.js';
import { Host, WORKER } from '../queue/work/host.js';
import { WorkQueues } from '../queue/work/work-queues.js';
import { WorkStore } from '../queue/work/work-store.js';
import { UnreadableValue } from '../vault/unreadable-value.js';
import { RequestSender } from './create/request-sender.service.js';
import { DueSessionsRepository } from './due-sessions.repository.js';
import { FetchesRepository } from './fetch/fetches.repository.js';
import { SessionFetcher } from './fetch/session-fetcher.service.js';
import { ProcessingLookups } from './processing/processing-lookups.service.js';
import { ProcessingsRepository, processingIdOf } from './processing/processings.repository.js';

/** Maximum jobs in progress in this process. Most of their time is the platform's. */
const CONCURRENCY = 10;

/**
 * One job names a session's row: it fetches the session, publishes its end, or sends the request for it. Or it names a
 * processing id, and looks up its session.
 */
@Processor('sessions', WORKER)
export class SessionsProcessor extends Host implements OnModuleInit {
  constructor(
    store: WorkStore,
    queues: WorkQueues,
    private readonly feeder: Feeder,
    private readonly rows: DueSessionsRepository,
    private readonly fetcher: SessionFetcher,
    private readonly fetches: FetchesRepository,
    private readonly sender: RequestSender,
    private readonly lookups: ProcessingLookups,
    private readonly processings: ProcessingsRepository,
  ) {
    super(store, queues.of('sessions'), { concurrency: CONCURRENCY });
  }

  onModuleInit(): void {
    this.feeder.feed({ queue: this.queue, due: () => this.rows.due() });
  }

  protected async work(id: string): Promise<boolean> {
    const processingId = processingIdOf(id);
    if (processingId !== undefined) await this.lookups.work(processingId, this.shutdown.signal);
    else if (!(await this.fetcher.work(id, this.shutdown.signal))) await this.sender.work(id);
    return false;
  }

  /** A request whose attempt is in flight keeps its time. */
  protected postpone(id: string, error: unknown): Promise<void> {
    const fault = error instanceof UnreadableValue ? 'unreadable' : 'internal';
    const processingId = processingIdOf(id);
    if (processingId !== undefined) return this.processings.postpone(processingId, fault, backoff);
    return this.fetches.postpone(id, fault, backoff);
  }

  /** A processing id is a text of the platform, which the log does not show. */
  protected override logged(id: string): object {
    return processingIdOf(id) === undefined ? { row: id } : {};
  }
}
