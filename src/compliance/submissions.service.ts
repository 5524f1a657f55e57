import { Injectable, Logger } from '@nestjs/common';
import { Audit, BEGUN } from '../audit/audit.js';
import { Clock } from '../config/clock.js';
import { PrismaService, type Tx, toBytes } from '../database/prisma.service.js';
import { confirmed, retryUntilStored } from '../database/retries.js';
import { errorTrace } from '../errors/error-trace.js';
import { Problem } from '../http/problem/problem.js';
import { PlatformClient } from '../platform/clients/platform-client.js';
import { SentData } from '../platform/clients/sent-data.js';
import { PlatformError, platformProblem } from '../platform/contract/platform-errors.js';
import type { SubmitComplianceJobRequest } from '../platform/contract/wire-types.js';
import { endingOf, OK, RequestCalls } from '../platform/pauses/request-calls.js';
import { CallGate } from '../sessions/fetch/call-gate.js';
import type { ComplianceJobResponse } from './compliance.dto.js';
import { ComplianceJobs } from './compliance-jobs.service.js';
import { ComplianceSeal, type LockedJob } from './job-row.js';
import { after, ENDED, givenUp } from './job-rules.js';
import { JobsRepository } from './jobs.repository.js';

const OPERATION = 'submitComplianceJob';

/** After which an upload counts as dead. */
const UPLOAD_MS = 15 * 60_000;

/**
 * Submits compliance jobs while the caller waits, each at most once.
 *
 * | step                                | after a crash                                               |
 * |-------------------------------------|-------------------------------------------------------------|
 * | 1. its row is committed: `Uploading` | `Rejected`, `not-submitted`; a repetition goes on with it  |
 * | 2. the files are uploaded           | the same                                                    |
 * | 3. the call is committed: `Submitting` | `Unknown`, when the call has surely ended                |
 * | 4. the call, and its outcome        | the same. A call that had no effect leaves no row           |
 */
@Injectable()
export class Submissions {
  private readonly log = new Logger(Submissions.name);

  constructor(
    private readonly prisma: PrismaService,
    private readonly rows: JobsRepository,
    private readonly jobs: ComplianceJobs,
    private readonly seal: ComplianceSeal,
    private readonly platform: PlatformClient,
    private readonly gate: CallGate,
    private readonly calls: RequestCalls,
    private readonly sent: SentData,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  /**
   * Submits a job and waits for the platform's answer. A repetition returns what is stored.
   *
   * @param id of the job here, the same for every run of one request
   * @param read uploads the files and returns the platform's request
   * @throws {Problem} 400 `platform-rejected`; 409 `not-submitted`; 504 `platform-unclear`, with the id; and as `read`
   */
  async submit(id: string, read: () => Promise<SubmitComplianceJobRequest>): Promise<ComplianceJobResponse> {
    const begun = await confirmed(() => this.begin(id));
    return this.answerOf(begun.state === 'Uploading' ? await this.send(begun, read) : begun);
  }

  /** @returns the job after the platform's answer; it throws if nothing was submitted */
  private async send(begun: LockedJob, read: () => Promise<SubmitComplianceJobRequest>): Promise<LockedJob> {
    const { id } = begun;
    let attempt = begun;
    let hasLeft = false;
    try {
      const request = await read();
      attempt = await this.mark(begun, request);
      const { jobId } = await this.sent.send(OPERATION, { 'compliance-job': [id] }, () => {
        hasLeft = true;
        return this.platform.submitComplianceJob(request);
      });
      return await this.stored(() => this.accept(attempt, jobId));
    } catch (error) {
      const isOurs = hasLeft && !(error instanceof PlatformError);
      if (isOurs) this.log.error({ msg: 'the answer to a submission could not be stored', id, ...errorTrace(error) });
      const failure = error instanceof PlatformError ? error : new PlatformError('unknown-outcome', OPERATION);
      const job = await this.stored(() => (hasLeft ? this.fail(attempt, failure) : this.drop(begun)));
      if (job) return job;
      throw hasLeft ? platformProblem(error) : unsent(error);
    }
  }

  /** Makes the row, or takes over a run that ended before it submitted anything. */
  private begin(id: string): Promise<LockedJob> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.rows.createOrLock(tx, id);
      this.audit.about('compliance-job', id);
      await this.audit.store(tx, BEGUN);
      if (row.state !== 'Uploading') return row;
      return this.rows.save(tx, row, { changes: { callNo: row.callNo + 1, giveUpAt: after(row.now, UPLOAD_MS) } });
    });
  }

  /** Commits that the call is sent. @throws {PlatformError} `rate-limited` during the pause of a 429; no other stops it */
  private mark({ id, callNo }: LockedJob, { files }: SubmitComplianceJobRequest): Promise<LockedJob> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.rows.lock(tx, id);
      if (row?.state !== 'Uploading' || row.callNo !== callNo) throw notSubmitted();
      await this.calls.admit(OPERATION, tx);
      const ids = files.map((file) => file.id);
      const sealed = toBytes(this.seal.files.seal(id, ids));
      const times = { attemptedAt: row.now, giveUpAt: after(row.now, this.gate.callMs) };
      return this.rows.save(tx, row, { changes: { state: 'Submitting', files: sealed, ...times } });
    });
  }

  /** Stores the platform's id. If it belongs to another submission, the outcome is unknown. */
  private accept(attempt: LockedJob, jobId: string): Promise<LockedJob> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.rows.lockExisting(tx, attempt.id);
      const job = isOpen(row) ? ((await this.rows.settle(tx, row, jobId)) ?? (await this.lose(tx, row))) : row;
      await this.gate.judge(tx, OPERATION, callOf(attempt), OK, row.now);
      return job;
    });
  }

  /** @returns undefined if nothing was submitted, so that the row is gone */
  private fail(attempt: LockedJob, error: PlatformError): Promise<LockedJob | undefined> {
    return this.prisma.transaction(async (tx) => {
      const row = await this.rows.lock(tx, attempt.id);
      if (!row) return undefined; // by an earlier try, whose commit was not confirmed
      const { verdict, retryAt } = await this.gate.judge(tx, OPERATION, callOf(attempt), endingOf(error), row.now);
      if (verdict === 'lost' || !isOpen(row)) return this.lose(tx, row);
      // Of an unknown one a review was published, so its row stays until it is resolved.
      if (retryAt !== null) return row.state === 'Unknown' ? row : this.drop(row, tx);
      const message = toBytes(this.seal.message.seal(row.id, error.platformMessage ?? ''));
      const changes = { state: 'Rejected', message, review: null, updatedAt: row.now, ...ENDED };
      const publish = { type: 'compliance.failed', state: 'Rejected', code: 'platform-rejected' } as const;
      return this.rows.save(tx, row, { changes, publish });
    });
  }

  private async lose(tx: Tx, row: LockedJob): Promise<LockedJob> {
    return row.state === 'Submitting' ? this.rows.save(tx, row, givenUp(row, row.now)) : row;
  }

  /** Removes the row of a run that submitted nothing, unless another run has taken it over. */
  private async drop({ id, callNo }: LockedJob, db: Pick<Tx, 'complianceJob'> = this.prisma): Promise<undefined> {
    await db.complianceJob.deleteMany({ where: { id, callNo, state: { in: ['Uploading', 'Submitting'] } } });
  }

  /** Only this process knows what it stores. */
  private stored<T>(store: () => Promise<T>): Promise<T> {
    return retryUntilStored(store, this.clock);
  }

  private answerOf(job: LockedJob): ComplianceJobResponse {
    const shown = this.jobs.view(job);
    const { id, state, error, platformMessage } = shown;
    if (state === 'Submitting' || state === 'Unknown') {
      const detail = `The platform did not answer the submission. GET /v1/compliance/jobs/${id} shows what became of it.`;
      throw new Problem('platform-unclear', detail, { extensions: { id, state } });
    }
    if (state !== 'Rejected') return shown;
    if (job.attemptedAt === null) throw notSubmitted();
    throw new Problem('platform-rejected', error?.message ?? '', { extensions: { id, state, platformMessage } });
  }
}

/** A late answer counts, although its submission is `Unknown` by then. */
const isOpen = ({ state }: LockedJob): boolean => state === 'Submitting' || state === 'Unknown';

/** The problem of a submission that was not sent: one that is unclear would name its row, which is gone. */
function unsent(error: unknown): unknown {
  const problem = platformProblem(error);
  if (!(problem instanceof Problem && problem.type === 'platform-unclear')) return problem;
  const detail = 'The platform gave no upload URL, so nothing was submitted. Send the files again.';
  return new Problem('upload-failed', detail);
}

const callOf = ({ id, now }: LockedJob) => ({ id, at: now, probes: [], refusedAt: null, refusedStatus: null });

function notSubmitted(): Problem {
  const detail =
    'The upload ended early or took longer than 15 minutes, so nothing was submitted. Send the files again.';
  return new Problem('not-submitted', detail);
}
