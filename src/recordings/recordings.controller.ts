import type { Readable } from 'node:stream';
import { Body, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiCreatedResponse, ApiOperation, ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Idempotent } from '../access/idempotency/idempotency.interceptor.js';
import { Scopes } from '../access/identity/scopes.js';
import { RawContent } from '../http/body/raw-content.js';
import { ClientDisconnect } from '../http/request/client-disconnect.js';
import { TakesStream } from '../http/request/route-options.js';
import { recordingBody } from './recording-body.js';
import { RecordingAnswer, RecordingUploadAnswer, RecordingUploadDto } from './recordings.dto.js';
import { RecordingsService } from './recordings.service.js';

/** Recordings of sessions, on their way to the platform. */
@ApiTags('recordings')
@Controller('v1/recordings')
@Scopes('sessions:write')
export class RecordingsController {
  constructor(private readonly recordings: RecordingsService) {}

  @Post()
  @ApiOperation({
    summary: 'Streams a recording through to the platform',
    description: 'Content-Length is required. An upload that breaks off can be sent again.',
  })
  @HttpCode(201)
  @TakesStream()
  @Idempotent()
  @ApiConsumes('audio/*', 'video/*', 'application/octet-stream')
  @ApiBody({ schema: { type: 'string', format: 'binary' } })
  @ApiCreatedResponse({ type: RecordingAnswer })
  async upload(
    @RawContent() body: Readable,
    @ClientDisconnect() signal: AbortSignal,
    @Req() request: FastifyRequest,
  ): Promise<RecordingAnswer> {
    return this.recordings.upload(body, recordingBody(request.raw.headers), signal);
  }

  @Post('upload-url')
  @ApiOperation({ summary: 'Hands out an address to which a browser or the EHR sends a recording' })
  @HttpCode(201)
  @Idempotent()
  @ApiCreatedResponse({ type: RecordingUploadAnswer })
  async uploadUrl(
    @Body() dto: RecordingUploadDto,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<RecordingUploadAnswer> {
    return this.recordings.uploadUrl(dto.contentType ?? '', dto.size ?? 0, signal);
  }
}
