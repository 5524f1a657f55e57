import { Processor } from '@nestjs/bullmq';
import type { OnModuleInit } from '@nestjs/common';
import type { Counter } from 'prom-client';
import { Metrics } from '../monitoring/metrics.js';
import { PlatformClient } from '../platform/clients/platform-client.js';
import { PlatformError } from '../platform/contract/platform-errors.js';
import { backoff } from '../queue/work/backoff.js';
import { Feeder } from '../queue/work/feeder.js';
import { Host, WORKER } from '../queue/work/host.js';
import { WorkQueues } from '../queue/work/work-queues.js';
import { WorkStore } from '../queue/work/work-store.js';
import { UnreadableValue } from '../vault/unreadable-value.js';
import { RequestSender } from './create/request-sender.service.js';
import { DueSessionsRepository } from './due-sessions.repository.js';
import { FetchesRepository } from './fetch/fetches.repository.js';
import { ProcessingsRepository, processingIdOf } from './processing/processings.repository.js';

/** Maximum jobs in progress in this process. Most of their time is the platform's. */
const CONCURRENCY = 10;

/** How the end of a call is counted and stored. */
interface Stores<Answer> {
  counter: Counter<'outcome'>;
  answer(answer: Answer): Promise<void>;
  /** @returns the code of the fault */
  fault(error: PlatformError): Promise<string>;
}

/**
 * One job names a session's row: it fetches the session, publishes its end, or sends the request for it. Or it names a
 * processing id, and looks up its session.
 */
@Processor('sessions', WORKER)
export class SessionsProcessor extends Host implements OnModuleInit {
  private readonly fetched;
  private readonly lookedUp;

  constructor(
    store: WorkStore,
    queues: WorkQueues,
    metrics: Metrics,
    private readonly feeder: Feeder,
    private readonly platform: PlatformClient,
    private readonly dueSessions: DueSessionsRepository,
    private readonly fetches: FetchesRepository,
    private readonly processings: ProcessingsRepository,
    private readonly sender: RequestSender,
  ) {
    super(store, queues.of('sessions'), { concurrency: CONCURRENCY });
    this.fetched = metrics.counter('session_fetches_total', 'Fetches of sessions by outcome', ['outcome']);
    const help = 'Lookups of processing ids by outcome';
    this.lookedUp = metrics.counter('processing_session_fetches_total', help, ['outcome']);
  }

  onModuleInit(): void {
    this.feeder.feed({ queue: this.queue, due: () => this.dueSessions.due() });
  }

  protected async work(id: string): Promise<boolean> {
    const processingId = processingIdOf(id);
    if (processingId !== undefined) await this.lookUp(processingId);
    else if (!(await this.fetch(id))) await this.sender.work(id);
    return false;
  }

  /** Does what is due about a session of the platform, if anything is. @returns false if it is none */
  private async fetch(id: string): Promise<boolean> {
    const begun = await this.fetches.begin(id);
    if (begun === undefined) return false;
    if (begun === 'nothing') return true;
    await this.call((signal) => this.platform.getSession(begun.sessionId, { signal }), {
      counter: this.fetched,
      answer: (answer) => this.fetches.storeAnswer(begun, answer),
      fault: (error) => this.fetches.storeFault(begun, error),
    });
    return true;
  }

  private async lookUp(processingId: string): Promise<void> {
    const begun = await this.processings.begin(processingId);
    if (!begun) return;
    const { sessionId: expectedSessionId } = begun;
    await this.call((signal) => this.platform.getProcessingSession(processingId, { signal, expectedSessionId }), {
      counter: this.lookedUp,
      answer: (answer) => this.processings.storeAnswer(begun, answer),
      fault: (error) => this.processings.storeFault(begun, error),
    });
  }

  /** Makes a call and stores its end. Of a call that a shutdown stopped nothing is stored: it is made again. */
  private async call<Answer>(
    send: (signal: AbortSignal) => Promise<Answer>,
    { counter, answer, fault }: Stores<Answer>,
  ): Promise<void> {
    const { signal } = this.shutdown;
    let answered: Answer;
    try {
      answered = await send(signal);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      if (!signal.aborted) counter.inc({ outcome: await fault(error) });
      return;
    }
    counter.inc({ outcome: 'answer' });
    await answer(answered);
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
