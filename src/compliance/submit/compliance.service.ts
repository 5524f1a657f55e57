import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import { decodeCursor, type Page, pageOf } from '../../http/request/page.js';
import { pollUntil } from '../../http/request/waiting.js';
import { type Health, HealthIndicator } from '../../http/server/health-indicator.js';
import { PlatformClient } from '../../platform/clients/platform-client.js';
import { type CapabilityName, requireCapability } from '../../platform/contract/capabilities.js';
import { Contract } from '../../platform/contract/contract.js';
import type { ComplianceFile } from '../../platform/contract/wire-types.js';
import { HandedOutUrls } from '../../platform/upload/handed-out-urls.js';
import { UploadStream, uploadProblem } from '../../platform/upload/upload-stream.js';
import { ComplianceSeal } from '../model/compliance-seal.js';
import { type ComplianceRequest, isSettled, type JobRow, type JobState } from '../model/job-row.js';
import { type ComplianceJobResponse, type ListedJobResponse, showJob, showListedJob } from '../model/job-view.js';
import { type JobCursor, JobsRepository } from '../model/jobs.repository.js';
import type { ComplianceUploadResponse } from './compliance.dto.js';
import { Submissions } from './submissions.js';

const PDF = 'application/pdf';

/** Compliance checks as the EHR asks for them and sees them. */
@Injectable()
export class ComplianceService {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly platform: PlatformClient,
    private readonly uploads: UploadStream,
    private readonly handedOut: HandedOutUrls,
    private readonly jobs: JobsRepository,
    private readonly submissions: Submissions,
    private readonly seal: ComplianceSeal,
  ) {}

  /** @throws {Problem} 501 `not-configured` naming the settings */
  require(...capabilities: CapabilityName[]): void {
    for (const name of capabilities) requireCapability(name, this.contract, this.env);
  }

  /** Hands out an address for one PDF. @param size bytes; 0 when it is not known */
  async uploadUrl(size: number, signal: AbortSignal): Promise<ComplianceUploadResponse> {
    this.require('compliance-upload');
    const { fileUrl: url, ...target } = await this.target(size, signal);
    await this.handedOut.remember('compliance', url);
    return { ...target, url };
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

  /**
   * Submits a job.
   *
   * @param id under which it is kept: the same for every run of one request
   * @param seconds to wait at most until it is settled
   */
  async submit(
    id: string,
    request: ComplianceRequest,
    seconds: number,
    signal: AbortSignal,
  ): Promise<ComplianceJobResponse> {
    return this.submissions.submit(id, request, () => this.show(id, seconds, signal));
  }

  /** A job by its id here or on the platform. @throws {Problem} 404 `unknown-job` */
  async show(id: string, seconds = 0, signal?: AbortSignal): Promise<ComplianceJobResponse> {
    const row = await pollUntil(seconds, () => this.find(id), isSettled, signal);
    return this.view(row);
  }

  /** One page of jobs without their results, the newest first. */
  async list(state: JobState | undefined, limit: number, cursor: string | undefined): Promise<Page<ListedJobResponse>> {
    const rows = await this.jobs.list(state, limit + 1, decodeCursor<JobCursor>(cursor, 'time', 'uuid'));
    return pageOf(
      rows,
      limit,
      (row) => [row.createdAt.toISOString(), row.id],
      (row) => showListedJob(row, this.seal),
    );
  }

  @HealthIndicator('compliance')
  async health(): Promise<Health> {
    return { status: 'ok', facts: { unknownSubmissions: await this.jobs.countUnknown() } };
  }

  /** Settles manually a submission whose outcome is unknown. @throws {Problem} as {@link Submissions} */
  async resolve(id: string, action: 'link' | 'create' | 'abandon', jobId?: string): Promise<ComplianceJobResponse> {
    const row = await this.find(id);
    return this.view(await this.submissions.resolve(row, action, jobId));
  }

  private target(size: number, signal: AbortSignal) {
    const file = { fileName: `${randomUUID()}.pdf`, contentType: PDF, size };
    return this.platform.uploadTarget('complianceUploadUrl', file, { signal }).catch((error: unknown) => {
      throw uploadProblem(error, 'a file');
    });
  }

  private async find(id: string): Promise<JobRow> {
    const row = await this.jobs.find(id);
    if (!row) throw new Problem(404, 'unknown-job', 'No compliance job with this id is known here.');
    return row;
  }

  private view(row: JobRow): ComplianceJobResponse {
    return showJob(row, this.seal);
  }
}
