import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { confirmed } from '../database/retries.js';
import { Problem } from '../http/problem/problem.js';
import type { Page } from '../http/request/page.js';
import { afterCommit, pollUntil } from '../http/request/waiting.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { ifReadable } from '../vault/unreadable-value.js';
import type {
  ComplianceJobResponse,
  ComplianceJobsQuery,
  ListedJobResponse,
  ResolveJobRequest,
} from './compliance.dto.js';
import { type ComplianceRequest, ComplianceSeal } from './job.js';
import { isSettled } from './job-rules.js';
import { JobsRepository, type ShownJob } from './jobs.repository.js';

/** How long a caller waits. */
interface Wait {
  seconds: number;
  /** Aborted when the caller disconnects. */
  signal: AbortSignal;
}

const MESSAGES: Record<string, string> = {
  'submission-unknown':
    'The platform did not answer the submission. Look for the job there, then resolve with "link", "create" or "abandon".',
  'result-unreadable':
    'The platform reported the end of this job, but its result cannot be read; the lookup is retried automatically. Check the job on the platform.',
  abandoned: 'An operator abandoned this job. To have the files checked, submit them again.',
  'maybe-gone':
    'The platform answered 404 to the lookup of this job: it does not know the job, or the URL is wrong. The lookup is retried automatically; resolve it with "link" or "abandon" if the job id is wrong.',
  gone: 'The platform does not know this job; the lookup is retried automatically. If it stays unknown, resolve it with "link" to another job, "create" or "abandon".',
  'platform-rejected':
    'The platform rejected this job. See platformMessage, if the platform sent one and this key may read it.',
};

const SUBMISSION_POSTPONED = 'The job could not be submitted yet; it is submitted again automatically.';
const LOOKUP_FAILED = 'The result could not be fetched from the platform; the lookup is retried automatically.';

/** Compliance jobs for the EHR. Each is committed first, then submitted by a worker. */
@Injectable()
export class ComplianceJobs {
  constructor(
    private readonly jobs: JobsRepository,
    private readonly seal: ComplianceSeal,
    private readonly notifier: QueueNotifier,
    private readonly audit: Audit,
  ) {}

  /** A job by its id here or on the platform. @throws {Problem} 404 `unknown-job` */
  async show(id: string, { seconds, signal }: Wait): Promise<ComplianceJobResponse> {
    return this.view(await pollUntil(seconds, () => this.find(id), isSettled, signal));
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
    if (action === 'create') {
      if (!(await this.jobs.sendAgain(job.id))) throw await this.wrongState(job.id);
      return this.submitted(
        { ...job, state: 'Requested', job_id: null, result: null, fault: null, review: null },
        wait,
      );
    }
    if (action === 'link') await this.link(job.id, jobId);
    else if (!(await this.jobs.abandon(job.id))) throw await this.wrongState(job.id);
    return this.view(await this.find(job.id));
  }

  private async link(id: string, jobId: string | undefined): Promise<void> {
    const pointer = '/jobId';
    if (jobId === undefined) {
      throw new Problem(422, 'job-id-needed', "To link, send the platform's id of the job in jobId.", { pointer });
    }
    const outcome = await this.jobs.link(id, jobId);
    if (outcome === 'wrong-state') throw await this.wrongState(id);
    if (outcome === 'taken') {
      const detail = 'Another submission is linked to this job. Find out which submission it belongs to.';
      throw new Problem(409, 'job-taken', detail, { pointer });
    }
    this.notifier.notify('compliance', 'linked');
  }

  /** @param stored the committed job, for a caller whose wait fails */
  private submitted(stored: ShownJob, { seconds, signal }: Wait): Promise<ComplianceJobResponse> {
    this.notifier.notify('compliance', 'requested');
    const outcome = async () => {
      const isOver = ({ state }: ShownJob) => state !== 'Requested';
      const job = this.view(await pollUntil(seconds, () => this.find(stored.id), isOver, signal));
      if (job.state !== 'Rejected' && job.state !== 'Abandoned') return job;
      const { code, message } = job.error as NonNullable<typeof job.error>;
      return new Problem(400, code, message, { extensions: { job: job.id, platformMessage: job.platformMessage } });
    };
    return afterCommit(outcome, () => this.view(stored));
  }

  private async find(id: string): Promise<ShownJob> {
    const row = await this.jobs.find(id);
    if (!row) throw new Problem(404, 'unknown-job', 'No compliance job has this id.');
    return row;
  }

  private async wrongState(id: string): Promise<Problem> {
    const detail =
      'Only a job whose submission got no answer, or that the platform does not know, can be resolved. Check its state.';
    return new Problem(409, 'wrong-state', detail, { extensions: { state: (await this.find(id)).state } });
  }

  private view(row: ShownJob): ComplianceJobResponse {
    const { unreadable = [], ...job } = this.listed(row);
    const result = ifReadable(() => this.seal.result.open(row.id, row.result));
    const platformMessage = ifReadable(() => this.seal.message.open(row.id, row.message)) || null;
    const empty = [...unreadable, ...(result === undefined ? ['result'] : [])];
    return { ...job, result: result ?? null, platformMessage, ...(empty.length > 0 && { unreadable: empty }) };
  }

  private listed(row: ShownJob): ListedJobResponse {
    const { shown_id: id, job_id: jobId, state, created_at: createdAt, updated_at: updatedAt } = row;
    this.audit.about('compliance-job', id);
    const files = ifReadable(() => this.seal.request.open(row.id, row.request)?.files.map((file) => file.id) ?? []);
    const unreadable = files === undefined && { unreadable: ['files'] };
    const shown = { id, jobId, state, error: errorOf(row), files: files ?? [], createdAt, updatedAt };
    return { ...shown, removedAt: row.removed_at, ...unreadable };
  }
}

function errorOf({ state, fault, review }: ShownJob): ListedJobResponse['error'] {
  const ended = { Abandoned: 'abandoned', Rejected: 'platform-rejected' }[state as string];
  const code = ended ?? (fault === 'gone' || fault === 'maybe-gone' ? fault : (review ?? fault));
  const message = state === 'Requested' ? SUBMISSION_POSTPONED : LOOKUP_FAILED;
  return code === null ? null : { code, message: MESSAGES[code] ?? message };
}
