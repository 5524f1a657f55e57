import type { Readable } from 'node:stream';
import { Body, Controller, Get, HttpCode, Patch, Post, Query, Req, Res } from '@nestjs/common';
import { ApiOkResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { StreamedAnswers } from '../../access/guard/streamed-answers.js';
import { Caller, type Principal, Scopes } from '../../access/identity/scopes.js';
import { StepUp } from '../../access/identity/step-up.js';
import { Env } from '../../config/env.js';
import { PageQuery } from '../../http/request/page.js';
import { RawContent, RouteOptions } from '../../http/request/route-options.js';
import { UuidParam } from '../../http/request/uuid-param.js';
import { PreferWait, type Wait } from '../../http/request/waiting.js';
import { CreationId, Idempotent } from '../../idempotency/idempotency.interceptor.js';
import { uploadedFiles } from '../upload/uploaded-files.js';
import { UploadsService } from '../upload/uploads.service.js';
import { CorrectionsService } from './corrections.service.js';
import { ImportRowsService } from './import-rows.service.js';
import { CancellationResponse, ImportPageResponse, ImportResponse } from './import-view.js';
import {
  ApplyRequest,
  CorrectionRequest,
  IMPORT_REQUEST_BODY,
  ImportQuery,
  ImportRowPageResponse,
  ImportRowsQuery,
  MappingRequest,
} from './imports.dto.js';
import { ImportsService } from './imports.service.js';

/** Bulk imports of people. */
@ApiTags('imports')
@Controller('v1/imports')
@Scopes('imports')
export class ImportsController {
  constructor(
    private readonly imports: ImportsService,
    private readonly uploads: UploadsService,
    private readonly rows: ImportRowsService,
    private readonly corrections: CorrectionsService,
    private readonly answers: StreamedAnswers,
    private readonly env: Env,
  ) {}

  @Post()
  @ApiOperation({
    summary: 'Upload files of people, to plan and sync them',
    requestBody: IMPORT_REQUEST_BODY,
  })
  @HttpCode(202)
  @RouteOptions({ body: 'stream' })
  @Idempotent()
  async create(
    @Query() query: ImportQuery,
    @CreationId() id: string,
    @RawContent() body: Readable,
    @PreferWait() { seconds, signal }: Wait,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ImportResponse> {
    const { idSystem, encounterSince: day, ...rest } = query;
    const encounterSince = day === undefined ? undefined : new Date(`${day}T00:00:00Z`);
    const files = uploadedFiles(request, body, this.env.IMPORT_BODY_LIMIT);
    await this.uploads.create(id, { ...rest, idSystems: idSystem, encounterSince }, files);
    reply.header('location', `/v1/imports/${id}`);
    return this.imports.waitUntilSettled(id, seconds, signal);
  }

  /** List imports, newest first */
  @Get()
  async list(@Query() query: PageQuery): Promise<ImportPageResponse> {
    return this.imports.list(query.limit, query.cursor);
  }

  /** Get an import: its state and the results of its rows */
  @Get(':id')
  async get(@UuidParam() id: string, @PreferWait() { seconds, signal }: Wait): Promise<ImportResponse> {
    return this.imports.waitUntilSettled(id, seconds, signal);
  }

  /** List the rows of an import */
  @Get(':id/rows')
  async listRows(@UuidParam() id: string, @Query() query: ImportRowsQuery): Promise<ImportRowPageResponse> {
    return this.rows.list(id, query);
  }

  /** Get the rejected rows as CSV, to be corrected and imported */
  @Get(':id/rejected.csv')
  @Scopes('imports', 'people:read')
  @ApiOkResponse({ content: { 'text/csv': { schema: { type: 'string' } } } })
  async rejected(@UuidParam() id: string, @Caller() caller: Principal, @Res() reply: FastifyReply): Promise<void> {
    const csv = await this.rows.rejectedCsv(id);
    reply.header('content-type', 'text/csv; charset=utf-8');
    reply.header('content-disposition', 'attachment; filename="rejected.csv"');
    await this.answers.send(reply, caller, csv);
  }

  /** Apply exactly the plan; confirm guards by name */
  @Post(':id/apply')
  @StepUp(({ override }) => Array.isArray(override) && override.length > 0)
  @HttpCode(202)
  async apply(@UuidParam() id: string, @Body() dto: ApplyRequest): Promise<ImportResponse> {
    return this.imports.apply(id, dto.override ?? []);
  }

  /** Pause an import; calls in flight finish */
  @Post(':id/pause')
  @HttpCode(200)
  async pause(@UuidParam() id: string): Promise<ImportResponse> {
    return this.imports.pause(id);
  }

  /** Resume a paused import */
  @Post(':id/resume')
  @HttpCode(200)
  async resume(@UuidParam() id: string): Promise<ImportResponse> {
    return this.imports.resume(id);
  }

  /** What cancelling an import would do to whom */
  @Get(':id/cancellation')
  async cancellation(@UuidParam() id: string): Promise<CancellationResponse> {
    return this.imports.cancellation(id);
  }

  /** Cancel an import: what was not sent is taken back, the rest finishes */
  @Post(':id/cancel')
  @HttpCode(200)
  async cancel(@UuidParam() id: string): Promise<ImportResponse> {
    return this.imports.cancel(id);
  }

  /** Retry the rows that failed or need review */
  @Post(':id/retry')
  @HttpCode(200)
  async retry(@UuidParam() id: string): Promise<ImportResponse> {
    return this.imports.retry(id);
  }

  /** Choose the columns of an import in the state needs-mapping */
  @Post(':id/mapping')
  @HttpCode(202)
  async map(
    @UuidParam() id: string,
    @Body() { columns }: MappingRequest,
    @PreferWait() { seconds, signal }: Wait,
  ): Promise<ImportResponse> {
    await this.uploads.map(id, columns);
    return this.imports.waitUntilSettled(id, seconds, signal);
  }

  /** Correct rejected rows of a plan, which is then recomputed */
  @Patch(':id/rows')
  @HttpCode(202)
  async correct(
    @UuidParam() id: string,
    @Body() { rows }: CorrectionRequest,
    @PreferWait() { seconds, signal }: Wait,
  ): Promise<ImportResponse> {
    await this.corrections.correct(id, rows);
    return this.imports.waitUntilSettled(id, seconds, signal);
  }
}
