import { Injectable } from '@nestjs/common';
import { Env } from '../config/env.js';
import { DueLoopDeps, DueProcessor } from '../due-rows/due-loop.js';
import { type ComplianceJob, PlatformClient } from '../platform/clients/platform-client.js';
import { Contract } from '../platform/contract/contract.js';
import { FetchLoop } from '../platform/fetch/fetch-loop.js';
import { QueueStore } from '../queue/backend/queue-store.js';
import { Poller } from '../queue/notifier/poller.js';
import { ComplianceSeal, JOB_TABLE, type JobRow, LANES } from './job.js';
import { JobOutcomes } from './job-outcomes.repository.js';
import { afterLookup, factsOf } from './job-rules.js';
import { JobSender } from './job-sender.js';

/** A due job; only jobs with the platform's id become due. */
type DueJob = JobRow & { jobId: string };

/** Maximum lookups in flight per process. */
const MAX_LOOKUPS = 2;

/** SQL: after half of the time waited so far, at least COMPLIANCE_REFRESH_EVERY_SECONDS ($1) and at most 6 hours. */
const NEXT_LOOKUP = `clock_timestamp() + greatest($1 * interval '1 second', least(interval '6 hours',
  (clock_timestamp() - coalesce(ended_at, attempted_at, created_at)) / 2))`;

/** Looks up compliance jobs: results announced by an event, and jobs without an event. */
@Injectable()
export class ResultRefresher extends FetchLoop<DueJob, ComplianceJob> {
  constructor(
    platform: PlatformClient,
    contract: Contract,
    outcomes: JobOutcomes,
    seal: ComplianceSeal,
    env: Env,
    deps: DueLoopDeps,
  ) {
    super(
      {
        name: 'compliance jobs',
        table: { ...JOB_TABLE, key: 'id', lanes: [{ lane: LANES.lookups }], effectMs: 0 },
        counter: { name: 'compliance_fetches_total', help: 'Lookups of compliance jobs by outcome' },
        concurrency: MAX_LOOKUPS,
        isConfigured: () => contract.canCall('getComplianceJob'),
        fetch: (row, signal) => platform.getComplianceJob(row.jobId, { signal }),
        async storeAnswer(tx, { row }, { state, raw }) {
          const change = afterLookup(factsOf(row), state);
          if (!change) {
            const set = `fault = NULL, failures = 0, refused_at = NULL, due_at = ${NEXT_LOOKUP}`;
            return { set, values: [env.COMPLIANCE_REFRESH_EVERY_SECONDS] };
          }
          await outcomes.publish(tx, row, change.publish);
          return {
            set: `state = $1, result = $2, ended_at = coalesce(ended_at, clock_timestamp()), review = NULL, due_at = NULL,
              announced_at = coalesce(announced_at, clock_timestamp()), fault = NULL, failures = 0, refused_at = NULL,
              updated_at = clock_timestamp()`,
            values: [change.job.state, seal.result.seal(row.id, raw)],
          };
        },
        storeNotFound: (_fetched, waitMs) => ({
          set: `fault = 'gone', failures = failures + 1,
            updated_at = CASE WHEN fault = 'gone' THEN updated_at ELSE clock_timestamp() END,
            due_at = clock_timestamp() + $1 * interval '1 millisecond'`,
          values: [waitMs],
        }),
      },
      deps,
    );
  }
}

@Injectable()
export class ComplianceProcessor extends DueProcessor {
  constructor(store: QueueStore, sender: JobSender, refresher: ResultRefresher, outcomes: JobOutcomes, poller: Poller) {
    super(
      'compliance',
      store,
      poller,
      [sender, refresher],
      [
        ['lost compliance submissions', sender.lostSince, () => sender.settleLost()],
        ['unreadable results', outcomes.nextReview, () => outcomes.reviewUnreadable()],
      ],
    );
  }
}
