import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { within } from '../../config/within.js';
import { confirmed } from '../../database/retries.js';
import { Problem } from '../../http/problem/problem.js';
import { afterCommit } from '../../http/request/waiting.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { PlatformError, platformProblem } from '../../platform/contract/platform-errors.js';
import { COMPLIANCE_QUEUE } from '../../queue/backend/queue-names.js';
import type { Lease } from '../../queue/due-rows/lease.js';
import { QueueNotifier } from '../../queue/notifier/queue-notifier.js';
import { OutcomeKeeper } from '../../queue/outbox/outcome-keeper.js';
import { ComplianceSeal } from '../model/compliance-seal.js';
import { type ComplianceRequest, isUnsettled, type JobRow, submissionOf } from '../model/job-row.js';
import { type ComplianceJobResponse, showRequested } from '../model/job-view.js';
import { JobsRepository } from '../model/jobs.repository.js';

/** Milliseconds for which the caller waits until the outcome is stored. */
const PATIENCE_MS = 5_000;

/** Where a certain refusal leaves a job. */
type Refused = 'Rejected' | 'Unknown';

/**
 * Submits jobs. The intent is committed before the call leaves, so a submission of which nothing more is known stands
 * as `Unknown` and is never made again unless it is resolved manually.
 */
@Injectable()
export class Submissions {
  constructor(
    private readonly platform: PlatformClient,
    private readonly jobs: JobsRepository,
    private readonly outcomes: OutcomeKeeper,
    private readonly seal: ComplianceSeal,
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly env: Env,
  ) {}

  /**
   * Submits a job, unless an earlier run of the same request may have.
   *
   * @param show reads the job for the caller
   * @returns what `show` gave; the job as it was committed when that can't be had
   * @throws {Problem} 400 `platform-rejected` and the like: the platform has certainly not taken it
   */
  async submit(
    id: string,
    request: ComplianceRequest,
    show: () => Promise<ComplianceJobResponse>,
  ): Promise<ComplianceJobResponse> {
    const sealed = this.seal.request.seal(id, request);
    const attempt = await confirmed(() => this.jobs.begin(id, sealed));
    return afterCommit(
      async () => (attempt && (await this.perform(attempt, request, 'Rejected'))) ?? show(),
      () => showRequested(id, request, this.clock.now()),
    );
  }

  /**
   * Settles a submission whose outcome is unknown.
   *
   * @throws {Problem} 409 `wrong-state` or `job-taken`, 422 `job-id-needed`, or as {@link submit}
   */
  async resolve(job: JobRow, action: 'link' | 'create' | 'abandon', jobId: string | undefined): Promise<JobRow> {
    const { id } = job;
    if (!isUnsettled(job)) throw wrongState(job);
    if (action === 'abandon') {
      if (!(await this.jobs.abandon(id))) throw wrongState(await this.row(id));
    } else if (action === 'create') {
      const attempt = await this.jobs.beginAgain(id);
      if (!attempt || !job.request) throw wrongState(await this.row(id));
      const request = this.seal.request.open(id, job.request);
      return afterCommit(
        async () => (await this.perform(attempt, request, 'Unknown')) ?? this.row(id),
        () => ({ ...job, jobId: null, state: 'Requested' as const, result: null, fault: null }),
      );
    } else {
      if (jobId === undefined) {
        const detail = "To link, name the platform's id of the job in jobId.";
        throw new Problem(422, 'job-id-needed', detail, { pointer: '/jobId' });
      }
      const outcome = await this.jobs.link(id, jobId);
      if (outcome === 'taken') throw jobTaken();
      if (outcome === 'settled') throw wrongState(await this.row(id));
      this.notifySoon('linked');
    }
    return this.row(id);
  }

  /** One attempt, which nothing may interrupt: a caller that hangs up must not make its outcome unknown. */
  private perform(attempt: Lease, request: ComplianceRequest, whenRefused: Refused): Promise<Problem | undefined> {
    return this.outcomes.follow(this.send(attempt, request, whenRefused));
  }

  /** @returns why the platform has certainly not taken it; an outcome that can't be stored soon is stored later */
  private async send(attempt: Lease, request: ComplianceRequest, whenRefused: Refused): Promise<Problem | undefined> {
    let stored = Promise.resolve(false);
    const job = attempt.key;
    try {
      const { jobId } = await this.platform.submitComplianceJob(submissionOf(request));
      stored = this.outcomes.keep({ job, jobId }, () => this.accepted(attempt, jobId));
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      const { kind } = error;
      const isUnknown = kind === 'unknown-outcome';
      const store = () => (isUnknown ? this.jobs.unknown(attempt) : this.jobs.refused(attempt, whenRefused, kind));
      stored = this.outcomes.keep({ job }, store);
      if (!isUnknown) return platformProblem(error, 'this compliance job') as Problem;
    } finally {
      stored.finally(() => this.jobs.outbox.due.done(attempt));
      await within(PATIENCE_MS, stored, () => false);
    }
    return undefined;
  }

  private async accepted(attempt: Lease, jobId: string): Promise<void> {
    if (!(await this.jobs.accepted(attempt, jobId))) await this.jobs.unknown(attempt);
    this.notifySoon('submitted');
  }

  private notifySoon(reason: string): void {
    this.notifier.notify(
      COMPLIANCE_QUEUE,
      reason,
      new Date(this.clock.now().getTime() + this.env.COMPLIANCE_REFRESH_AFTER_SECONDS * 1_000),
    );
  }

  private async row(id: string): Promise<JobRow> {
    const row = await this.jobs.find(id);
    if (!row) throw new Error('A compliance job vanished while it was submitted.');
    return row;
  }
}

function wrongState({ state }: JobRow): Problem {
  const detail =
    'Only a job that the platform did not answer for, or does not know, can be resolved; look at its state.';
  return new Problem(409, 'wrong-state', detail, { extensions: { state } });
}

function jobTaken(): Problem {
  const detail = 'Another submission has this job of the platform; find out which of the two it is.';
  return new Problem(409, 'job-taken', detail, { pointer: '/jobId' });
}
