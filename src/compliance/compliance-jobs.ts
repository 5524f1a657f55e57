import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { afterCommit } from '../database/answer-after-commit.js';
import { Database } from '../database/database.js';
import { pollUntil } from '../database/poll-until.js';
import { PrismaService } from '../database/prisma.service.js';
import { confirmed } from '../database/retries.js';
import { Problem } from '../http/problem/problem.js';
import type { Page } from '../http/request/page.js';
import { type Wait } from '../http/request/waiting.js';
import { Contract } from '../platform/contract/contract.js';
import { RequestResolver, type ResolveAction } from '../platform/send/request-resolver.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { HELD, HELD_MESSAGE } from '../sending/hold-code.js';
import { Sending } from '../sending/sending.js';
import { openIfReadable } from '../vault/unreadable-value.js';
import type {
  ComplianceJobResponse,
  ComplianceJobsQuery,
  ListedJobResponse,
  ResolveJobRequest,
} from './compliance.dto.js';
import { type ComplianceRequest, ComplianceSeal, JOB_TABLE, type JobRow } from './job.js';
import { JobOutcomes } from './job-outcomes.repository.js';
import { isSettled, lacksLookup, resolveActions, UNSETTLED } from './job-rules.js';
import { JobsRepository } from './jobs.repository.js';

const MESSAGES: Record<string, string> = {
  'submission-unknown':
    'The platform did not answer the submission. Look for the job there, then resolve with "link", "create" or "abandon".',
  'result-unreadable':
    'The platform reported the end of this job, but its result cannot be read; the lookup is retried automatically. Check the job on the platform.',
  'no-result':
    'The platform reported the end of this job, but its result cannot be fetched. GET /v1/capabilities names the missing settings of compliance-result.',
  'unreadable-answer':
    'The answer about this job cannot be read; the lookup is retried automatically. The check platform in /health/ready names the pointer and what it found.',
  abandoned: 'An operator abandoned this job. To have the files checked, submit them again.',
  'maybe-gone':
    'The platform answered 404 to the lookup of this job: it does not know the job, or the URL is wrong. The lookup is retried automatically; resolve it with "link" or "abandon" if the job id is wrong.',
  gone: 'The platform does not know this job; the lookup is retried automatically. If it stays unknown, resolve it with "link" to another job, "create" or "abandon".',
  'platform-rejected':
    'The platform rejected this job. See platformMessage, if the platform sent one and this key may read it.',
};

const EFFECTS: Record<ResolveAction, string> = {
  link: 'Links this submission to the given job of the platform and fetches its result. Nothing is sent.',
  create: 'Submits the files again. If the platform did create the job, there will be two.',
  abandon: 'Ends the job without a result. To have the files checked, submit them again.',
};

const SUBMISSION_POSTPONED = 'The job could not be submitted yet; it is submitted again automatically.';
const LOOKUP_FAILED = 'The result could not be fetched from the platform; the lookup is retried automatically.';

const ID_NEEDED = "To link, send the platform's id of the job in jobId.";
const TAKEN = 'Another submission is linked to this job. Find out which submission it belongs to.';
const LINK_PROBLEMS = {
  idNeeded: new Problem('job-id-needed', ID_NEEDED, { pointer: '/jobId' }),
  taken: new Problem('job-taken', TAKEN, { pointer: '/jobId' }),
};

/** Compliance jobs for the EHR. Each is committed first, then submitted by a worker. */
@Injectable()
export class ComplianceJobs {
  private readonly resolver: RequestResolver<JobRow>;
  private readonly canLookUp: boolean;

  constructor(
    private readonly jobs: JobsRepository,
    private readonly seal: ComplianceSeal,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
    private readonly sending: Sending,
    database: Database,
    prisma: PrismaService,
    outcomes: JobOutcomes,
    contract: Contract,
  ) {
    this.canLookUp = contract.canCall('getComplianceJob');
    this.resolver = new RequestResolver(
      {
        table: JOB_TABLE,
        problems: LINK_PROBLEMS,
        unsettled: UNSETTLED,
        // While only the URL of the lookup may be wrong, the platform may have the job.
        resendable: `request IS NOT NULL AND fault IS DISTINCT FROM 'maybe-gone'`,
        onResend: `job_id = NULL, ended_at = NULL, announced_at = NULL, review = NULL, updated_at = clock_timestamp()`,
        onlyUnsettled:
          'Only a job whose submission got no answer, or that the platform does not know, can be resolved. Check its state.',
        settle: (tx, row, jobId) => outcomes.settle(tx, row, jobId),
        abandon: (tx, row) => outcomes.abandon(tx, row),
      },
      database,
      prisma,
      audit,
    );
  }

  /** A job by its id here or on the platform. @throws {Problem} 404 `unknown-job` */
  async show(id: string, { seconds, signal }: Wait): Promise<ComplianceJobResponse> {
    const isOver = (row: JobRow) => isSettled(row, this.canLookUp);
    return this.view(await pollUntil(seconds, () => this.find(id), isOver, signal));
  }

  /** One page of jobs without their results, newest first. */
  async list(query: ComplianceJobsQuery): Promise<Page<ListedJobResponse>> {
    const page = await this.jobs.list(query);
    return { ...page, items: page.items.map((row) => this.listed(row)) };
  }

  /**
   * Commits a job and waits for the outcome of its submission.
   *
   * @param id of the job here, the same for every run of one request
   * @throws {Problem} 400 `platform-rejected` or `abandoned`
   */
  async submit(id: string, request: ComplianceRequest, wait: Wait): Promise<ComplianceJobResponse> {
    const stored = await confirmed(() => this.jobs.keep(id, request));
    return this.submitted(stored, wait);
  }

  /**
   * Resolves a job whose submission got no answer, or that the platform does not know; a pending one can be abandoned.
   *
   * @throws {Problem} 404 `unknown-job`, 409 `wrong-state` or `job-taken`, 422 `job-id-needed`, or as {@link submit}
   */
  async resolve(idOrAlias: string, { action, jobId }: ResolveJobRequest, wait: Wait): Promise<ComplianceJobResponse> {
    const job = await this.find(idOrAlias);
    await this.resolver.resolve(job.id, action, jobId, wait.signal);
    if (action === 'link') this.notifier.notify('compliance');
    if (action !== 'create') return this.view(await this.find(job.shownId));
    return this.submitted({ ...job, state: 'Requested', jobId: null, result: null, fault: null, review: null }, wait);
  }

  /** @param stored the committed job, for a caller whose wait fails */
  private submitted(stored: JobRow, { seconds, signal }: Wait): Promise<ComplianceJobResponse> {
    this.notifier.notify('compliance');
    const outcome = async () => {
      const isOver = ({ state }: JobRow) => state !== 'Requested' || this.sending.isHeldNow;
      const job = this.view(await pollUntil(seconds, () => this.find(stored.shownId), isOver, signal));
      if (job.state !== 'Rejected' && job.state !== 'Abandoned') return job;
      const type = job.state === 'Abandoned' ? 'abandoned' : 'platform-rejected';
      return new Problem(type, job.error?.message ?? '', {
        extensions: { job: job.id, platformMessage: job.platformMessage },
      });
    };
    return afterCommit(outcome, () => this.view(stored));
  }

  private async find(id: string): Promise<JobRow> {
    const row = await this.jobs.find(id);
    if (!row) throw new Problem('unknown-job', 'No compliance job has this id. GET /v1/compliance/jobs lists them.');
    this.audit.about('compliance-job', row.shownId);
    return row;
  }

  private view(row: JobRow): ComplianceJobResponse {
    const { unreadable = [], ...job } = this.listed(row);
    const result = openIfReadable(() => this.seal.result.open(row.id, row.result));
    const platformMessage = openIfReadable(() => this.seal.message.open(row.id, row.message)) || null;
    const empty = [...unreadable, ...(result === undefined ? ['result'] : [])];
    const choices = resolveActions(row).map((action) => ({ action, does: EFFECTS[action] }));
    return { ...job, result: result ?? null, platformMessage, choices, ...(empty.length > 0 && { unreadable: empty }) };
  }

  private listed(row: JobRow): ListedJobResponse {
    const { shownId: id, jobId, state, createdAt, updatedAt, removedAt } = row;
    this.audit.about('compliance-job', id);
    const files = openIfReadable(() => this.seal.request.open(row.id, row.request)?.files.map((file) => file.id) ?? []);
    const unreadable = files === undefined && { unreadable: ['files'] };
    const shown = { id, jobId, state, error: this.errorOf(row), files: files ?? [] };
    return { ...shown, createdAt, updatedAt, removedAt, ...unreadable };
  }

  private errorOf(row: JobRow): ListedJobResponse['error'] {
    const { state, fault, review } = row;
    if (state === 'Requested' && this.sending.isHeldNow) return { code: HELD, message: HELD_MESSAGE };
    const ended = { Abandoned: 'abandoned', Rejected: 'platform-rejected' }[state as string];
    const unreadable = review ?? (lacksLookup(row, this.canLookUp) ? 'no-result' : fault);
    const code = ended ?? (fault === 'gone' || fault === 'maybe-gone' ? fault : unreadable);
    const message = state === 'Requested' ? SUBMISSION_POSTPONED : LOOKUP_FAILED;
    return code === null ? null : { code, message: MESSAGES[code] ?? message };
  }
}
