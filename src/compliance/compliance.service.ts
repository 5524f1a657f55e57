import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { within } from '../config/within.js';
import { Database } from '../database/database.js';
import { PrismaService } from '../database/prisma.service.js';
import { confirmed } from '../database/retries.js';
import { Problem } from '../http/problem/problem.js';
import type { Page } from '../http/request/page.js';
import { afterCommit, pollUntil } from '../http/request/waiting.js';
import { type Health, HealthIndicator } from '../http/server/health-indicator.js';
import { PlatformClient } from '../platform/clients/platform-client.js';
import { requireCapability } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import { PlatformError, platformProblem } from '../platform/contract/platform-errors.js';
import { type ComplianceFile, platformKey } from '../platform/contract/wire-types.js';
import { SpellingsRepository } from '../platform/http/spellings.repository.js';
import { OutcomeKeeper } from '../platform/send/outcome-keeper.js';
import { HandedOutUrls } from '../platform/upload/handed-out-urls.js';
import { UploadStream, uploadProblem } from '../platform/upload/upload-stream.js';
import type { Lease } from '../queue/due-rows/lease.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { ifReadable } from '../vault/unreadable-value.js';
import type {
  ComplianceJobResponse,
  ComplianceJobsQuery,
  ComplianceUploadResponse,
  ListedJobResponse,
  ResolveJobRequest,
} from './compliance.dto.js';
import { type ComplianceRequest, ComplianceSeal, isSettled, isUnsettled, type JobRow, submissionOf } from './job.js';
import { JobsRepository } from './jobs.repository.js';

/** How long a caller waits for the outcome of an attempt to be stored. */
const STORE_TIMEOUT_MS = 5_000;

const MESSAGES: Record<string, string> = {
  'submission-unknown':
    'The platform did not answer the submission. Look for the job there, then resolve with "link", "create" or "abandon".',
  abandoned: 'An operator abandoned this job. To have the files checked, submit them again.',
  gone: 'The platform does not know this job; the lookup is retried automatically. If it stays unknown, resolve it with "link" to another job, "create" or "abandon".',
  'maybe-gone':
    'The platform answered 404 to the lookup of this job: it does not know the job, or the URL is wrong. The lookup is retried automatically.',
  rejected: 'The platform rejected this job. Correct it and submit it again.',
  'not-found': 'The platform does not know something that the submission names. Correct it and submit it again.',
  'not-configured': 'Submissions are not configured. GET /v1/capabilities names the missing settings.',
  unauthorized: 'The platform rejected the API key. Ask an operator to fix it, then submit the job again.',
  unreachable: 'The platform could not be reached. Submit the job again.',
  'rate-limited': 'The platform limits the rate of requests. Submit the job again later.',
};

const LOOKUP_FAILED = 'The result could not be fetched from the platform; the lookup is retried automatically.';

/**
 * Compliance jobs for the EHR. Each submission is committed before it is sent, so that one without a known outcome
 * becomes `Unknown`, and is sent again only after a manual resolve.
 */
@Injectable()
export class ComplianceService {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly prisma: PrismaService,
    private readonly platform: PlatformClient,
    private readonly uploads: UploadStream,
    private readonly handedOut: HandedOutUrls,
    private readonly jobs: JobsRepository,
    private readonly outcomes: OutcomeKeeper,
    private readonly seal: ComplianceSeal,
    private readonly database: Database,
    private readonly spellings: SpellingsRepository,
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** @throws {Problem} 501 `not-configured` with the missing settings */
  require(capability: 'compliance-submit' | 'compliance-upload'): void {
    requireCapability(capability, this.contract, this.env);
  }

  /** Returns an upload address for one PDF. @param size in bytes; 0 if unknown */
  async uploadUrl(size: number, signal: AbortSignal): Promise<ComplianceUploadResponse> {
    this.require('compliance-upload');
    await this.audit.commitBegun();
    const { fileUrl: url, ...target } = await this.target(size, signal);
    await this.handedOut.remember('compliance', url);
    return { ...target, url };
  }

  /** Writes the audit entry of a job before its first file is uploaded. @param id of the job */
  async recordStart(id: string): Promise<void> {
    this.audit.about('compliance-job', id);
    await this.audit.commitBegun();
  }

  /** Uploads one PDF to the platform's store. @returns the URL that identifies it in a job */
  async upload(pdf: Buffer, signal: AbortSignal): Promise<string> {
    const { uploadUrl, fileUrl, method, headers } = await this.target(pdf.length, signal);
    const options = { contentLength: pdf.length, headers, signal, method };
    await this.uploads.uploadTo(uploadUrl, Readable.from([pdf]), options).catch((error: unknown) => {
      throw uploadProblem(error, 'a file');
    });
    return fileUrl;
  }

  /**
   * Rejects files whose URL did not come from {@link uploadUrl} (spec, Compliance job submission).
   *
   * @throws {Problem} 422 `url-not-allowed`
   */
  async checkUrls(files: readonly ComplianceFile[]): Promise<void> {
    const urls = files.map(({ url }) => url);
    const known = await this.handedOut.known('compliance', urls);
    const position = urls.findIndex((url) => !known.has(url));
    if (position === -1) return;
    const detail = `The url of the file at position ${position} did not come from POST /v1/compliance/upload-url. Upload the file there, then send the url of that answer.`;
    throw new Problem(422, 'url-not-allowed', detail, { pointer: `/files/${position}/url` });
  }

  /** A job by its id here or on the platform. @throws {Problem} 404 `unknown-job` */
  async show(id: string, seconds = 0, signal?: AbortSignal): Promise<ComplianceJobResponse> {
    return this.view(await pollUntil(seconds, () => this.find(id), isSettled, signal));
  }

  /** One page of jobs without their results, newest first. */
  async list({ state, limit, cursor }: ComplianceJobsQuery): Promise<Page<ListedJobResponse>> {
    const page = await this.jobs.list(state, limit, cursor);
    return { ...page, items: page.items.map((row) => this.listed(row)) };
  }

  @HealthIndicator('compliance')
  async health(): Promise<Health> {
    const unknownSubmissions = await this.prisma.complianceJob.count({ where: { state: 'Unknown' } });
    const elsewhere = { fault: 'platform-address', dueAt: { not: null } };
    const facts = { unknownSubmissions };
    if (!(await this.prisma.complianceJob.findFirst({ where: elsewhere, select: { id: true } })))
      return { status: 'ok', facts };
    const reason =
      'Another server than the platform answers getComplianceJob. Check PLATFORM_BASE_URL and its path in PLATFORM_CONTRACT.';
    return { status: 'degraded', reason, facts };
  }

  /**
   * Submits a job, unless an earlier run of the same request may have submitted it.
   *
   * @param id of the job, the same for every run of one request
   * @param seconds maximum time to wait until it is settled
   * @throws {Problem} 400 `platform-rejected` and others, if the platform certainly did not accept it
   */
  async submit(
    id: string,
    request: ComplianceRequest,
    seconds: number,
    signal: AbortSignal,
  ): Promise<ComplianceJobResponse> {
    const sealed = this.seal.request.seal(id, request);
    const attempt = await confirmed(() => this.jobs.begin(id, sealed));
    const now = this.clock.now();
    const stored = {
      id,
      job_id: null,
      request: sealed,
      result: null,
      fault: null,
      created_at: now,
      updated_at: now,
      removed_at: null,
    };
    return afterCommit(
      async () =>
        (attempt && (await this.outcomes.follow(this.send(attempt, request, 'Rejected')))) ??
        this.show(id, seconds, signal),
      () => this.view({ ...stored, state: 'Requested' }),
    );
  }

  /**
   * Resolves a submission whose outcome is unknown.
   *
   * @throws {Problem} 404 `unknown-job`, 409 `wrong-state` or `job-taken`, 422 `job-id-needed`, or as {@link submit}
   */
  async resolve(idOrAlias: string, { action, jobId }: ResolveJobRequest): Promise<ComplianceJobResponse> {
    const job = await this.find(idOrAlias);
    const { id } = job;
    if (!isUnsettled(job)) throw wrongState(job);
    if (action === 'create') {
      const request = this.seal.request.open(id, job.request);
      const attempt = await this.jobs.beginAgain(id);
      if (!attempt || !request) throw wrongState(await this.find(id));
      return afterCommit(
        async () => (await this.outcomes.follow(this.send(attempt, request, 'Unknown'))) ?? this.show(id),
        () => this.view({ ...job, job_id: null, state: 'Requested', result: null, fault: null }),
      );
    }
    if (action === 'link') await this.link(id, jobId);
    else if (!(await this.jobs.abandon(id))) throw wrongState(await this.find(id));
    return this.show(id);
  }

  private async link(id: string, jobId: string | undefined): Promise<void> {
    const pointer = '/jobId';
    if (jobId === undefined) {
      throw new Problem(422, 'job-id-needed', "To link, send the platform's id of the job in jobId.", { pointer });
    }
    await this.spellings.learnIfNew(this.database.pool, jobId);
    const outcome = await this.jobs.link(id, platformKey(jobId));
    if (outcome === 'taken') {
      const detail = 'Another submission is linked to this job. Find out which submission it belongs to.';
      throw new Problem(409, 'job-taken', detail, { pointer });
    }
    if (outcome === 'settled') throw wrongState(await this.find(id));
    this.notifySoon('linked');
  }

  /**
   * Makes one attempt, without an abort signal: a caller that disconnects must not make its outcome unknown.
   *
   * @returns why the platform certainly did not accept it; an outcome that cannot be stored soon is stored later
   */
  private async send(
    attempt: Lease,
    request: ComplianceRequest,
    stateIfRejected: 'Rejected' | 'Unknown',
  ): Promise<Problem | undefined> {
    let stored = Promise.resolve(false);
    const job = attempt.key;
    try {
      const { jobId } = await this.platform.submitComplianceJob(submissionOf(request));
      stored = this.outcomes.keep({ job, jobId }, async () => {
        await this.jobs.accepted(attempt, jobId);
        this.notifySoon('submitted');
      });
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      const { kind } = error;
      const state = kind === 'unknown-outcome' ? 'Unknown' : stateIfRejected;
      stored = this.outcomes.keep({ job }, () => this.jobs.notAccepted(attempt, state, kind));
      if (kind !== 'unknown-outcome') return platformProblem(error, 'this compliance job') as Problem;
    } finally {
      stored.finally(() => this.jobs.outbox.due.done(attempt));
      await within(STORE_TIMEOUT_MS, stored, () => false);
    }
    return undefined;
  }

  private notifySoon(reason: string): void {
    this.notifier.notify('compliance', reason, this.env.COMPLIANCE_REFRESH_AFTER_SECONDS * 1_000);
  }

  private target(size: number, signal: AbortSignal) {
    const file = { fileName: `${randomUUID()}.pdf`, contentType: 'application/pdf', size };
    return this.platform.uploadTarget('complianceUploadUrl', file, { signal }).catch((error: unknown) => {
      throw uploadProblem(error, 'a file');
    });
  }

  private async find(id: string): Promise<JobRow> {
    const row = await this.jobs.find(id);
    if (!row) throw new Problem(404, 'unknown-job', 'No compliance job has this id.');
    this.audit.about('compliance-job', row.id);
    return row;
  }

  private view(row: ShownJob): ComplianceJobResponse {
    const { unreadable = [], ...job } = this.listed(row);
    const result = ifReadable(() => this.seal.result.open(row.id, row.result));
    const empty = [...unreadable, ...(result === undefined ? ['result'] : [])];
    return { ...job, result: result ?? null, ...(empty.length > 0 && { unreadable: empty }) };
  }

  private listed(row: ShownJob): ListedJobResponse {
    const { id, job_id: jobId, state, request, fault } = row;
    const { created_at: createdAt, updated_at: updatedAt, removed_at: removedAt } = row;
    this.audit.about('compliance-job', id);
    const code = state === 'Unknown' ? 'submission-unknown' : state === 'Abandoned' ? 'abandoned' : fault;
    const error = code === null ? null : { code, message: MESSAGES[code] ?? LOOKUP_FAILED };
    const opened = ifReadable(() => this.seal.request.open(id, request));
    const files = opened?.files.map((file) => file.id) ?? [];
    const unreadable = opened === undefined && { unreadable: ['files'] };
    return { id, jobId, state, error, files, createdAt, updatedAt, removedAt, ...unreadable };
  }
}

type ShownJob = Pick<
  JobRow,
  'id' | 'job_id' | 'state' | 'request' | 'result' | 'fault' | 'created_at' | 'updated_at' | 'removed_at'
>;

function wrongState({ state }: JobRow): Problem {
  const detail =
    'Only a job whose submission got no answer, or that the platform does not know, can be resolved. Check its state.';
  return new Problem(409, 'wrong-state', detail, { extensions: { state } });
}
