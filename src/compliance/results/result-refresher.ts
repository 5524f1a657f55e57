import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Metrics } from '../../http/server/metrics.js';
import { ComplianceClient, type ComplianceJob } from '../../platform/clients/compliance-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { COMPLIANCE_QUEUE } from '../../queue/backend/queue-names.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { FetchLoop } from '../../sessions/refresh/fetch-loop.js';
import { resultOf } from '../../sessions/refresh/platform-sessions.js';
import { JobFeedEvents } from '../model/job-feed-news.js';
import { JobsRepository } from '../model/jobs.repository.js';
import { type ResultClaim, ResultsRepository } from './results.repository.js';

/** Looks up compliance jobs: results that an event promised, and jobs of which nothing was heard. */
@Injectable()
export class ResultRefresher extends FetchLoop<ResultClaim, ComplianceJob> {
  constructor(
    private readonly jobs: JobsRepository,
    results: ResultsRepository,
    compliance: ComplianceClient,
    contract: Contract,
    database: Database,
    news: JobFeedEvents,
    notifier: QueueNotifier,
    clock: Clock,
    random: Random,
    metrics: Metrics,
    worker: WorkerProcess,
  ) {
    const fetches = metrics.counter('compliance_fetches_total', 'Look-ups of compliance jobs by what they came to', [
      'outcome',
    ]);
    super(
      {
        name: 'compliance jobs',
        isConfigured: () => contract.missingFor('getComplianceJob').length === 0,
        claimNext: () => results.claimNext(),
        nextDueAt: () => results.nextDueAt(),
        fetch: ({ jobId }, signal) => resultOf(compliance.getComplianceJob(jobId, { signal })),
        keepAnswer: async (turn, answer) => {
          await database.transaction((tx) => results.storeAnswer(tx, turn, answer));
          await news.tell();
        },
        mayWork: () => worker.mayWork(),
        recordNotFound: (turn, waitMs) => results.storeGone(turn, waitMs),
        keepFault: (turn, fault) => results.storeFault(turn, fault),
        endClaim: (turn) => results.endClaim(turn),
        notifyAt: (moment) => notifier.notify(COMPLIANCE_QUEUE, 'due', new Date(moment)),
        count: (outcome) => fetches.inc({ outcome }),
      },
      clock,
      random,
    );
  }

  /** Finds what the queue forgot, and submissions whose process died. */
  override async lookAround(): Promise<void> {
    await this.jobs.expire();
    await super.lookAround();
  }
}
