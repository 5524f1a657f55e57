import type { Readable } from 'node:stream';
import { Body, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiCreatedResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Idempotent } from '../access/idempotency/idempotency.interceptor.js';
import { Scopes } from '../access/identity/scopes.js';
import { Problems } from '../http/problem/described-problems.js';
import { RawContent, RouteOptions } from '../http/request/route-options.js';
import { ClientDisconnect } from '../http/request/waiting.js';
import { PLATFORM_PROBLEMS } from '../platform/contract/platform-errors.js';
import { UPLOAD_PROBLEMS } from '../platform/upload/upload-stream.js';
import { recordingBody } from './recording-file.js';
import { RecordingResponse, RecordingUploadRequest, RecordingUploadResponse } from './recordings.dto.js';
import { RecordingsService } from './recordings.service.js';

/** Recordings of sessions, on their way to the platform. */
@ApiTags('recordings')
@Controller('v1/recordings')
@Scopes('sessions:write')
@Problems(PLATFORM_PROBLEMS, UPLOAD_PROBLEMS)
export class RecordingsController {
  constructor(private readonly recordings: RecordingsService) {}

  /**
   * Streams a recording through to the platform
   *
   * @remarks Content-Length is required. An upload that breaks off can be sent again.
   */
  @Post()
  @HttpCode(201)
  @RouteOptions({ body: 'stream' })
  @Problems({ 400: ['empty-recording'], 411: ['length-required'] })
  @Idempotent()
  @ApiConsumes('audio/*', 'video/*', 'application/octet-stream')
  @ApiBody({ schema: { type: 'string', format: 'binary' } })
  @ApiCreatedResponse({ type: RecordingResponse })
  async upload(
    @RawContent() body: Readable,
    @ClientDisconnect() signal: AbortSignal,
    @Req() request: FastifyRequest,
  ): Promise<RecordingResponse> {
    return this.recordings.upload(body, recordingBody(request.raw.headers), signal);
  }

  /** Hands out an address to which a browser or the EHR sends a recording */
  @Post('upload-url')
  @HttpCode(201)
  @Idempotent()
  async uploadUrl(
    @Body() dto: RecordingUploadRequest,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<RecordingUploadResponse> {
    return this.recordings.uploadUrl(dto.contentType ?? '', dto.size ?? 0, signal);
  }
}
