import { Injectable } from '@nestjs/common';
import { Contract } from '../contract/contract.js';
import type { SubmitComplianceJobRequest, SubmitComplianceJobResponse } from '../contract/wire-types.js';
import { type CallOptions, PlatformHttp } from '../http/platform-http.js';
import { type FileToUpload, requestUploadTarget, type UploadTarget } from '../upload/upload-target.js';

/** A compliance job as the platform shows it. */
export interface ComplianceJob {
  /** `unknown` when the contract does not say where a state stands or what it means. */
  state: 'running' | 'completed' | 'failed' | 'unknown';
  /** The whole answer, as it came. */
  raw: unknown;
}

/** Compliance checks. All methods throw {@link PlatformError}. */
@Injectable()
export class ComplianceClient {
  constructor(
    private readonly http: PlatformHttp,
    private readonly contract: Contract,
  ) {}

  /** Asks for an address to which a PDF is then sent. */
  complianceUploadUrl(file: FileToUpload, options: CallOptions = {}): Promise<UploadTarget> {
    return requestUploadTarget('complianceUploadUrl', file, { http: this.http, contract: this.contract, options });
  }

  /** Submits a job. An unreadable answer leaves the outcome unknown. */
  async submitComplianceJob(
    body: SubmitComplianceJobRequest,
    options: CallOptions = {},
  ): Promise<SubmitComplianceJobResponse> {
    const answer = await this.http.call({ operation: 'submitComplianceJob', body, ...options });
    return { jobId: answer.requiredId('jobId') };
  }

  /** Reads a job. */
  async getComplianceJob(jobId: string, options: CallOptions = {}): Promise<ComplianceJob> {
    const answer = await this.http.call({ operation: 'getComplianceJob', parameters: { jobId }, ...options });
    const { states, response } = this.contract.operations.getComplianceJob;
    const raw = answer.body;
    if (!states || response.state === undefined) return { state: 'unknown', raw };
    const state = answer.requiredText('state');
    if (states.completed.includes(state)) return { state: 'completed', raw };
    return { state: states.failed.includes(state) ? 'failed' : 'running', raw };
  }
}
