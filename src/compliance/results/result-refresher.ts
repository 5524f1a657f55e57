import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Random } from '../../config/random.js';
import { Database } from '../../database/database.js';
import { Metrics } from '../../http/server/metrics.js';
import { ComplianceClient, type ComplianceJob } from '../../platform/clients/compliance-client.js';
import { Contract } from '../../platform/contract/contract.js';
import { COMPLIANCE_QUEUE } from '../../queue/backend/queue-names.js';
import { WorkerProcess } from '../../queue/due-rows/worker-process.js';
import { Doorbell } from '../../queue/notifier/queue-notifier.js';
import { FetchLoop } from '../../sessions/refresh/fetch-loop.js';
import { resultOf } from '../../sessions/refresh/platform-sessions.js';
import { JobNews } from '../model/job-feed-news.js';
import { JobsRepository } from '../model/jobs.repository.js';
import { ResultsRepository, type ResultTurn } from './results.repository.js';

/** Looks up compliance jobs: results that an event promised, and jobs of which nothing was heard. */
@Injectable()
export class ResultRefresher extends FetchLoop<ResultTurn, ComplianceJob> {
  constructor(
    private readonly jobs: JobsRepository,
    results: ResultsRepository,
    compliance: ComplianceClient,
    contract: Contract,
    database: Database,
    news: JobNews,
    doorbell: Doorbell,
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
        takeTurn: () => results.takeTurn(),
        nextDueAt: () => results.nextDueAt(),
        fetch: ({ jobId }, signal) => resultOf(compliance.getComplianceJob(jobId, { signal })),
        keepAnswer: async (turn, answer) => {
          await database.transaction((tx) => results.storeAnswer(tx, turn, answer));
          await news.tell();
        },
        mayWork: () => worker.mayWork(),
        keepGone: (turn, waitMs) => results.storeGone(turn, waitMs),
        keepFault: (turn, fault) => results.storeFault(turn, fault),
        endTurn: (turn) => results.endTurn(turn),
        ringAt: (moment) => doorbell.ring(COMPLIANCE_QUEUE, 'due', new Date(moment)),
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
