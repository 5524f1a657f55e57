import { Readable } from 'node:stream';
import { Body, Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import {
  ApiAcceptedResponse,
  ApiCreatedResponse,
  ApiExtraModels,
  ApiOkResponse,
  ApiOperation,
  ApiTags,
} from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Scopes } from '../access/identity/scopes.js';
import { Audit } from '../audit/audit.js';
import { Env } from '../config/env.js';
import { Problem } from '../http/problem/problem.js';
import { RouteOptions } from '../http/request/route-options.js';
import { ClientDisconnect, PreferWait, type Wait } from '../http/request/waiting.js';
import { CreationId, Idempotent } from '../idempotency/idempotency.interceptor.js';
import { FileUploads } from '../platform/clients/file-uploads.js';
import { UploadAddressResponse } from '../platform/clients/upload-address.dto.js';
import { requireCapability } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
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
import { ComplianceJobs } from './compliance-jobs.js';
import type { ComplianceRequest } from './job.js';
import { type Pdf, pdfFile, readComplianceForm } from './pdf-form.js';

/** Maximum bytes of a job's JSON: signed URLs of a few hundred files. */
const JOB_BODY_LIMIT = 1024 ** 2;

/** How long a submission waits for the platform's id without `Prefer: wait`. */
const SUBMIT_WAIT_SECONDS = 10;

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
    private readonly uploads: FileUploads,
    private readonly handedOut: HandedOutUrls,
    private readonly contract: Contract,
    private readonly env: Env,
    private readonly audit: Audit,
  ) {}

  @Post('jobs')
  @ApiOperation({
    summary: 'Submit PDFs, as a form or by the URLs of uploaded files',
    description: `201 once the platform's id is known, otherwise 202. Without \`Prefer: wait\` the response waits up to ${SUBMIT_WAIT_SECONDS} seconds for it.`,
    requestBody: JOB_REQUEST_BODY,
  })
  @HttpCode(201)
  @RouteOptions({ body: 'multipart', bodyLimit: JOB_BODY_LIMIT })
  @Idempotent()
  @ApiCreatedResponse({ type: ComplianceJobResponse })
  @ApiAcceptedResponse({ type: ComplianceJobResponse, description: 'Stored, and shown as Requested or Unknown' })
  async submit(
    @CreationId() id: string,
    @PreferWait(SUBMIT_WAIT_SECONDS) wait: Wait,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ComplianceJobResponse> {
    requireCapability('compliance-submit', this.contract, this.env);
    const body = await (request.isMultipart() ? this.fromForm(id, request, wait.signal) : this.fromJson(request.body));
    const job = await this.jobs.submit(id, body, wait);
    reply.header('location', `/v1/compliance/jobs/${job.id}`).code(job.jobId === null ? 202 : 201);
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
   * Resolve a submission with unknown outcome
   *
   * @remarks `link`: names its job on the platform. `create`: sends it again. `abandon`: ends it.
   */
  @Post('jobs/:id/resolve')
  @HttpCode(200)
  @ApiOkResponse({ type: ComplianceJobResponse })
  async resolve(
    @Param('id') id: string,
    @Body() dto: ResolveJobRequest,
    @PreferWait(SUBMIT_WAIT_SECONDS) wait: Wait,
  ): Promise<ComplianceJobResponse> {
    return this.jobs.resolve(id, dto, wait);
  }

  /** Uploads the files of a form as they arrive. @throws {Problem} 503 `busy` */
  private async fromForm(id: string, request: FastifyRequest, signal: AbortSignal): Promise<ComplianceRequest> {
    if (this.forms >= MAX_FORMS) {
      const detail = `This process is reading ${MAX_FORMS} forms with PDFs, which is the maximum. Send this one again.`;
      throw new Problem('busy', detail, { retryAfterSeconds: RETRY_SECONDS });
    }
    this.audit.about('compliance-job', id);
    const signals = { asking: signal, sending: signal };
    const upload = ({ chunks, size }: Pdf) =>
      this.uploads.send('compliance', pdfFile(size), () => Readable.from(chunks), signals);
    this.forms += 1;
    try {
      return await jobBody(await readComplianceForm(request.parts(), upload));
    } catch (error) {
      await dropRest(request.raw);
      throw error;
    } finally {
      this.forms -= 1;
    }
  }

  /** Rejects files whose URL did not come from `uploadUrl` (spec, Compliance job submission). */
  private async fromJson(body: unknown): Promise<ComplianceRequest> {
    const request = await jobBody(body);
    const urls = request.files.map(({ url }) => url);
    const known = await this.handedOut.known('compliance', urls);
    const position = urls.findIndex((url) => !known.has(url));
    if (position === -1) return request;
    const detail = `The url of the file at position ${position} did not come from POST /v1/compliance/upload-url. Upload the file there, then send the url of that answer.`;
    throw new Problem('url-not-allowed', detail, { pointer: `/files/${position}/url` });
  }
}
