import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { Clock } from '../config/clock.js';
import { Env } from '../config/env.js';
import { within } from '../config/within.js';
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
import type { ComplianceFile } from '../platform/contract/wire-types.js';
import { HandedOutUrls } from '../platform/upload/handed-out-urls.js';
import { UploadStream, uploadProblem } from '../platform/upload/upload-stream.js';
import type { Lease } from '../queue/due-rows/lease.js';
import { QueueNotifier } from '../queue/notifier/queue-notifier.js';
import { OutcomeKeeper } from '../queue/outbox/outbox.js';
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

/** Milliseconds for which the caller waits until the outcome of an attempt is stored. */
const PATIENCE_MS = 5_000;

const MESSAGES: Record<string, string> = {
  'submission-unknown':
    'The platform did not answer the submission; look there, then resolve with "link", "create" or "abandon".',
  abandoned: 'A person decided that nothing more is done; submit the files again if they are to be checked.',
  gone: 'The platform does not know this job now, and is asked again by itself; if it never will, resolve it with "link" to another, "create" or "abandon".',
  rejected: 'The platform refused this job; correct it and submit it again.',
  'not-found': 'The platform did not know what the submission names; correct it and submit it again.',
  'not-configured': 'The submission is not set up; GET /v1/capabilities says what is missing.',
  unauthorized: 'The platform refuses our key; an operator must look at it before the job is submitted again.',
  unreachable: 'The platform could not be reached; submit the job again.',
  'rate-limited': 'The platform asks for patience; submit the job again later.',
};

const NOT_ASKED = 'The platform could not be asked for the result; it is tried again by itself.';

/**
 * Compliance checks as the EHR asks for them and sees them. The intent is committed before a submission leaves, so one of
 * which nothing more is known stands as `Unknown` and is never made again unless it is resolved manually.
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
    private readonly notifier: QueueNotifier,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /** @throws {Problem} 501 `not-configured` naming the settings */
  require(capability: 'compliance-submit' | 'compliance-upload'): void {
    requireCapability(capability, this.contract, this.env);
  }

  /** Hands out an address for one PDF. @param size bytes; 0 when it is not known */
  async uploadUrl(size: number, signal: AbortSignal): Promise<ComplianceUploadResponse> {
    this.require('compliance-upload');
    await this.audit.commitBegun();
    const { fileUrl: url, ...target } = await this.target(size, signal);
    await this.handedOut.remember('compliance', url);
    return { ...target, url };
  }

  /** The job is on record before its first file leaves. @param id under which it will be kept */
  async announce(id: string): Promise<void> {
    this.audit.about('compliance-job', id);
    await this.audit.commitBegun();
  }

  /** Brings one PDF to the platform's store. @returns the URL by which a job names it */
  async upload(pdf: Buffer, signal: AbortSignal): Promise<string> {
    const { uploadUrl, fileUrl, method, headers } = await this.target(pdf.length, signal);
    const how = { contentLength: pdf.length, headers, signal, method };
    await this.uploads.uploadTo(uploadUrl, Readable.from([pdf]), how).catch((error: unknown) => {
      throw uploadProblem(error, 'a file');
    });
    return fileUrl;
  }

  /**
   * Holds files to URLs of the platform's own (spec, Compliance job submission): those that we handed out.
   *
   * @throws {Problem} 422 `url-not-allowed`
   */
  async checkUrls(files: readonly ComplianceFile[]): Promise<void> {
    const urls = files.map(({ url }) => url);
    const known = await this.handedOut.known('compliance', urls);
    const position = urls.findIndex((url) => !known.has(url));
    if (position === -1) return;
    const detail = `The url of the file at position ${position} is none that POST /v1/compliance/upload-url gave; upload the file there and name the url of that answer.`;
    throw new Problem(422, 'url-not-allowed', detail, { pointer: `/files/${position}/url` });
  }

  /** A job by its id here or on the platform. @throws {Problem} 404 `unknown-job` */
  async show(id: string, seconds = 0, signal?: AbortSignal): Promise<ComplianceJobResponse> {
    return this.view(await pollUntil(seconds, () => this.find(id), isSettled, signal));
  }

  /** One page of jobs without their results, the newest first. */
  async list({ state, limit, cursor }: ComplianceJobsQuery): Promise<Page<ListedJobResponse>> {
    const page = await this.jobs.list(state, limit, cursor);
    return { ...page, items: page.items.map((row) => this.listed(row)) };
  }

  @HealthIndicator('compliance')
  async health(): Promise<Health> {
    const unknownSubmissions = await this.prisma.complianceJob.count({ where: { state: 'Unknown' } });
    return { status: 'ok', facts: { unknownSubmissions } };
  }

  /**
   * Submits a job, unless an earlier run of the same request may have.
   *
   * @param id under which it is kept: the same for every run of one request
   * @param seconds to wait at most until it is settled
   * @throws {Problem} 400 `platform-rejected` and the like: the platform has certainly not taken it
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
    const kept = {
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
      () => this.view({ ...kept, state: 'Requested' }),
    );
  }

  /**
   * Settles manually a submission whose outcome is unknown.
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
    const where = { pointer: '/jobId' };
    if (jobId === undefined) {
      throw new Problem(422, 'job-id-needed', "To link, name the platform's id of the job in jobId.", where);
    }
    const outcome = await this.jobs.link(id, jobId);
    if (outcome === 'taken') {
      const detail = 'Another submission has this job of the platform; find out which of the two it is.';
      throw new Problem(409, 'job-taken', detail, where);
    }
    if (outcome === 'settled') throw wrongState(await this.find(id));
    this.notifySoon('linked');
  }

  /**
   * One attempt, which nothing may interrupt: a caller that hangs up must not make its outcome unknown.
   *
   * @returns why the platform has certainly not taken it; an outcome that can't be stored soon is stored later
   */
  private async send(
    attempt: Lease,
    request: ComplianceRequest,
    whenRefused: 'Rejected' | 'Unknown',
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
      const state = kind === 'unknown-outcome' ? 'Unknown' : whenRefused;
      stored = this.outcomes.keep({ job }, () => this.jobs.notAccepted(attempt, state, kind));
      if (kind !== 'unknown-outcome') return platformProblem(error, 'this compliance job') as Problem;
    } finally {
      stored.finally(() => this.jobs.outbox.due.done(attempt));
      await within(PATIENCE_MS, stored, () => false);
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
    if (!row) throw new Problem(404, 'unknown-job', 'No compliance job with this id is known here.');
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
    const error = code === null ? null : { code, message: MESSAGES[code] ?? NOT_ASKED };
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
    'Only a job that the platform did not answer for, or does not know, can be resolved; look at its state.';
  return new Problem(409, 'wrong-state', detail, { extensions: { state } });
}
