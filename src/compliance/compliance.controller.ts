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
import { WithoutText } from '../access/guard/clinical-text.interceptor.js';
import { CreationId, Idempotent } from '../access/idempotency/idempotency.interceptor.js';
import { Scopes } from '../access/identity/scopes.js';
import { Problems } from '../http/problem/described-problems.js';
import { dropRest } from '../http/request/request-source.js';
import { RouteOptions } from '../http/request/route-options.js';
import { ClientDisconnect, PreferWait } from '../http/request/waiting.js';
import { PLATFORM_PROBLEMS } from '../platform/contract/platform-errors.js';
import { UPLOAD_PROBLEMS } from '../platform/upload/upload-stream.js';
import {
  ComplianceJobPageResponse,
  ComplianceJobRequest,
  ComplianceJobResponse,
  ComplianceJobsQuery,
  ComplianceUploadRequest,
  ComplianceUploadResponse,
  JOB_REQUEST_BODY,
  jobBody,
  jobWithoutResult,
  ResolveJobRequest,
} from './compliance.dto.js';
import { ComplianceService } from './compliance.service.js';
import { readComplianceForm } from './pdf-form.js';

/** Bytes of a job's JSON: signed URLs of a few hundred files. */
const JOB_BODY_LIMIT = 1024 ** 2;

/** Checks of PDF documents against named criteria. */
@ApiTags('compliance')
@ApiExtraModels(ComplianceJobRequest)
@Controller('v1/compliance')
@Scopes('compliance')
export class ComplianceController {
  constructor(private readonly compliance: ComplianceService) {}

  @Post('jobs')
  @ApiOperation({
    summary: 'Submits PDFs, as a form or by the URLs of uploaded files',
    description: "201 once the platform's id is known, else 202.",
    requestBody: JOB_REQUEST_BODY,
  })
  @HttpCode(201)
  @RouteOptions({ body: 'multipart', bodyLimit: JOB_BODY_LIMIT })
  @Problems(PLATFORM_PROBLEMS, UPLOAD_PROBLEMS, {
    400: ['repeated-part', 'unknown-part'],
    404: ['unknown-job'],
    422: ['not-a-pdf', 'url-not-allowed'],
  })
  @Idempotent()
  @ApiCreatedResponse({ type: ComplianceJobResponse })
  @ApiAcceptedResponse({ type: ComplianceJobResponse, description: 'Stored; submitted as soon as possible' })
  @WithoutText(jobWithoutResult)
  async submit(
    @CreationId() id: string,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ComplianceJobResponse> {
    this.compliance.require('compliance-submit');
    const submission = request.isMultipart()
      ? await this.fromForm(id, request, signal)
      : await this.fromJson(request.body);
    const job = await this.compliance.submit(id, submission, wait, signal);
    reply.header('location', `/v1/compliance/jobs/${job.id}`).code(job.jobId === null ? 202 : 201);
    return job;
  }

  /** Returns an address to which the EHR uploads one PDF itself */
  @Post('upload-url')
  @Problems(PLATFORM_PROBLEMS, UPLOAD_PROBLEMS)
  @HttpCode(201)
  @Idempotent()
  async uploadUrl(
    @Body() dto: ComplianceUploadRequest,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<ComplianceUploadResponse> {
    return this.compliance.uploadUrl(dto.size ?? 0, signal);
  }

  /**
   * Jobs without their results, newest first
   *
   * @remarks Jobs in the state Unknown wait for an operator.
   */
  @Get('jobs')
  @Problems({ 400: ['bad-cursor'] })
  @ApiOkResponse({ type: ComplianceJobPageResponse })
  async list(@Query() query: ComplianceJobsQuery): Promise<ComplianceJobPageResponse> {
    return this.compliance.list(query);
  }

  /** A job with its result, by our id or the platform's */
  @Get('jobs/:id')
  @Problems({ 404: ['unknown-job'] })
  @WithoutText(jobWithoutResult)
  async show(
    @Param('id') id: string,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<ComplianceJobResponse> {
    return this.compliance.show(id, wait, signal);
  }

  /**
   * Resolves a submission that got no answer
   *
   * @remarks `link`: names its job on the platform. `create`: sends it again. `abandon`: ends it.
   */
  @Post('jobs/:id/resolve')
  @Problems(PLATFORM_PROBLEMS, {
    404: ['unknown-job'],
    409: ['job-taken', 'wrong-state'],
    422: ['job-id-needed'],
  })
  @HttpCode(200)
  @ApiOkResponse({ type: ComplianceJobResponse })
  @WithoutText(jobWithoutResult)
  async resolve(@Param('id') id: string, @Body() dto: ResolveJobRequest): Promise<ComplianceJobResponse> {
    return this.compliance.resolve(id, dto);
  }

  private async fromForm(id: string, request: FastifyRequest, signal: AbortSignal) {
    this.compliance.require('compliance-upload');
    await this.compliance.recordStart(id);
    try {
      return await jobBody(await readComplianceForm(request.parts(), (pdf) => this.compliance.upload(pdf, signal)));
    } catch (error) {
      await dropRest(request.raw);
      throw error;
    }
  }

  private async fromJson(body: unknown) {
    const submission = await jobBody(body);
    await this.compliance.checkUrls(submission.files);
    return submission;
  }
}
