import { Injectable } from '@nestjs/common';
import { Env } from '../config/env.js';
import { DueLoopDeps } from '../due-rows/due-loop.js';
import { PlatformClient } from '../platform/clients/platform-client.js';
import { Contract } from '../platform/contract/contract.js';
import { OutcomeWriter } from '../platform/send/outcome-writer.js';
import { SendOnce } from '../platform/send/send-once.js';
import { Sending } from '../sending/sending.js';
import { ComplianceSeal, JOB_TABLE, type JobRow, submissionOf } from './job.js';
import { JobOutcomes } from './job-outcomes.repository.js';

/** A row to submit. Retention and erasure keep its request. */
type Submission = JobRow & { request: Buffer };

/** Maximum submissions in flight per process. A caller waits for each. */
const MAX_SUBMISSIONS = 4;

/** Submits compliance jobs. */
@Injectable()
export class JobSender extends SendOnce<Submission, { jobId: string }> {
  constructor(
    outcomes: JobOutcomes,
    platform: PlatformClient,
    seal: ComplianceSeal,
    contract: Contract,
    env: Env,
    outcomeWriter: OutcomeWriter,
    sending: Sending,
    deps: DueLoopDeps,
  ) {
    super(
      {
        name: 'compliance submissions',
        table: { ...JOB_TABLE, onRequestedAgain: 'review = NULL, updated_at = clock_timestamp()' },
        outcomes,
        counter: { name: 'compliance_submissions_total', help: 'Attempts to submit a compliance job by outcome' },
        concurrency: MAX_SUBMISSIONS,
        timeoutMs: env.PLATFORM_TIMEOUT_SECONDS * 1_000,
        isConfigured: () => contract.canCall('submitComplianceJob'),
        send: ({ id, request }) => platform.submitComplianceJob(submissionOf(seal.request.open(id, request))),
      },
      outcomeWriter,
      sending,
      deps,
    );
  }
}
