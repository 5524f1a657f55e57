import { Readable } from 'node:stream';
import { Body, Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import { ApiCreatedResponse, ApiExtraModels, ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Scopes } from '../access/identity/scopes.js';
import { Env } from '../config/env.js';
import { Problem } from '../http/problem/problem.js';
import { RouteOptions } from '../http/request/route-options.js';
import { ClientDisconnect, PreferWait, type Wait } from '../http/request/waiting.js';
import { CreationId, Idempotent } from '../idempotency/idempotency.interceptor.js';
import { FileUploads } from '../platform/clients/file-uploads.js';
import { UploadAddressResponse } from '../platform/clients/upload-address.dto.js';
import { requireCapability } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import type { SubmitComplianceJobRequest } from '../platform/contract/wire-types.js';
import { HandedOutUrls } from '../platform/upload/handed-out-urls.js';
import { dropRest } from '../platform/upload/request-source.js';
import {
  ComplianceJobPageResponse,
  ComplianceJobRequest,
  ComplianceJobResponse,
  ComplianceJobsQuery,
  ComplianceUploadRequest,
  JOB_REQUEST_BODY,
  jobBody,
  ResolveJobRequest,
} from './compliance.dto.js';
import { ComplianceJobs } from './compliance-jobs.service.js';
import { type Pdf, pdfFile, readComplianceForm } from './pdf-form.js';
import { Submissions } from './submissions.service.js';

/** Maximum bytes of a job's JSON: signed URLs of a few hundred files. */
const JOB_BODY_LIMIT = 1024 ** 2;

/** Maximum forms that this process reads at a time: each has one PDF in memory. */
const MAX_FORMS = 4;

const RETRY_SECONDS = 5;

/** Checks of PDF documents against named criteria. */
@ApiTags('compliance')
@ApiExtraModels(ComplianceJobRequest)
@Controller('v1/compliance')
@Scopes('compliance')
export class ComplianceController {
  /** Forms that are being read. */
  private forms = 0;

  constructor(
    private readonly jobs: ComplianceJobs,
    private readonly submissions: Submissions,
    private readonly uploads: FileUploads,
    private readonly handedOut: HandedOutUrls,
    private readonly contract: Contract,
    private readonly env: Env,
  ) {}

  @Post('jobs')
  @ApiOperation({
    summary: 'Submit PDFs, as a form or by the URLs of uploaded files',
    description:
      'Answered with the answer of the platform. If that is lost: 504, with the id of the job, which is Unknown until it is resolved. A repetition with the same Idempotency-Key submits again only after an answer that says that no job was made.',
    requestBody: JOB_REQUEST_BODY,
  })
  @HttpCode(201)
  @RouteOptions({ body: 'multipart', bodyLimit: JOB_BODY_LIMIT })
  @Idempotent()
  @ApiCreatedResponse({ type: ComplianceJobResponse })
  async submit(
    @CreationId() id: string,
    @ClientDisconnect() signal: AbortSignal,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ComplianceJobResponse> {
    requireCapability('compliance-submit', this.contract, this.env);
    const body = request.isMultipart() ? undefined : await this.fromJson(request.body);
    const read = async () => body ?? this.fromForm(request, signal);
    // Many clients read an answer only after they have sent the whole body.
    const job = await this.submissions.submit(id, read).finally(() => dropRest(request.raw));
    reply.header('location', `/v1/compliance/jobs/${job.id}`);
    return job;
  }

  /** Get an upload URL for one PDF */
  @Post('upload-url')
  @HttpCode(201)
  @Idempotent()
  async uploadUrl(
    @Body() { size = 0 }: ComplianceUploadRequest,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<UploadAddressResponse> {
    return this.uploads.address('compliance', pdfFile(size), signal);
  }

  /**
   * List jobs without their results, newest first
   *
   * @remarks Jobs in the state Unknown, and those with a `review`, wait for an operator.
   */
  @Get('jobs')
  @ApiOkResponse({ type: ComplianceJobPageResponse })
  async list(@Query() query: ComplianceJobsQuery): Promise<ComplianceJobPageResponse> {
    return this.jobs.list(query);
  }

  /** Get a job with its result, by our id or the platform's */
  @Get('jobs/:id')
  async show(@Param('id') id: string, @PreferWait() wait: Wait): Promise<ComplianceJobResponse> {
    return this.jobs.show(id, wait);
  }

  /**
   * Resolve a job that awaits a decision
   *
   * @remarks `link`: names its job on the platform, which is looked up. `abandon`: ends it.
   */
  @Post('jobs/:id/resolve')
  @HttpCode(200)
  async resolve(@Param('id') id: string, @Body() dto: ResolveJobRequest): Promise<ComplianceJobResponse> {
    return this.jobs.resolve(id, dto);
  }

  /** Uploads the files of a form as they arrive. @throws {Problem} 503 `busy` */
  private async fromForm(request: FastifyRequest, signal: AbortSignal): Promise<SubmitComplianceJobRequest> {
    if (this.forms >= MAX_FORMS) {
      const detail = `This process is reading ${MAX_FORMS} forms with PDFs, which is the maximum. Send this one again.`;
      throw new Problem('busy', detail, { retryAfterSeconds: RETRY_SECONDS });
    }
    const signals = { asking: signal, sending: signal };
    const upload = ({ chunks, size }: Pdf) =>
      this.uploads.send('compliance', pdfFile(size), () => Readable.from(chunks), signals);
    this.forms += 1;
    try {
      return await jobBody(await readComplianceForm(request.parts(), upload));
    } finally {
      this.forms -= 1;
    }
  }

  /** Rejects files whose URL did not come from `uploadUrl` (spec, Compliance job submission). */
  private async fromJson(body: unknown): Promise<SubmitComplianceJobRequest> {
    const request = await jobBody(body);
    const urls = request.files.map(({ url }) => url);
    const known = await this.handedOut.known('compliance', urls);
    const position = urls.findIndex((url) => !known.has(url));
    if (position === -1) return request;
    const detail = `The url of the file at position ${position} did not come from POST /v1/compliance/upload-url. Upload the file there, then send the url of that answer.`;
    throw new Problem('url-not-allowed', detail, { pointer: `/files/${position}/url` });
  }
}
