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

/** Bytes of a job's JSON: signed URLs of some hundred files. */
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
    summary: 'Submits PDFs, as a form or by the URLs of files that were uploaded',
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
  @ApiAcceptedResponse({ type: ComplianceJobResponse, description: 'Kept, and submitted as soon as possible' })
  @WithoutText(jobWithoutResult)
  async submit(
    @CreationId() id: string,
    @PreferWait() wait: number,
    @ClientDisconnect() signal: AbortSignal,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ComplianceJobResponse> {
    this.compliance.require('compliance-submit');
    const asked = request.isMultipart() ? await this.uploaded(id, request, signal) : await this.named(request.body);
    const job = await this.compliance.submit(id, asked, wait, signal);
    reply.header('location', `/v1/compliance/jobs/${job.id}`).code(job.jobId === null ? 202 : 201);
    return job;
  }

  /** Hands out an address to which the EHR sends one PDF by itself */
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
   * Jobs without their results, the newest first
   *
   * @remarks Those in state Unknown wait for a person.
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
   * Says what became of a submission that got no answer
   *
   * @remarks `link`: it is this job of the platform. `create`: it is sent again. `abandon`: it is given up.
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

  private async uploaded(id: string, request: FastifyRequest, signal: AbortSignal) {
    this.compliance.require('compliance-upload');
    await this.compliance.announce(id);
    try {
      return await jobBody(await readComplianceForm(request.parts(), (pdf) => this.compliance.upload(pdf, signal)));
    } catch (error) {
      await dropRest(request.raw);
      throw error;
    }
  }

  private async named(body: unknown) {
    const asked = await jobBody(body);
    await this.compliance.checkUrls(asked.files);
    return asked;
  }
}
