import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { Body, Controller, HttpCode, Post, Req } from '@nestjs/common';
import { ApiBody, ApiConsumes, ApiCreatedResponse, ApiTags } from '@nestjs/swagger';
import type { FastifyRequest } from 'fastify';
import { Scopes } from '../access/identity/scopes.js';
import { RawContent, RouteOptions } from '../http/request/route-options.js';
import { ClientDisconnect } from '../http/request/waiting.js';
import { Idempotent } from '../idempotency/idempotency.interceptor.js';
import { FileUploads } from '../platform/clients/file-uploads.js';
import { UploadAddressResponse } from '../platform/clients/upload-address.dto.js';
import { dropRest, sourceOf } from '../platform/upload/request-source.js';
import { recordingBody, recordingFile } from './recording-file.js';
import { RecordingResponse, RecordingUploadRequest } from './recordings.dto.js';

/** Recordings of sessions, on their way to the platform's store. This service stores none of them. */
@ApiTags('recordings')
@Controller('v1/recordings')
@Scopes('sessions:write')
export class RecordingsController {
  constructor(private readonly uploads: FileUploads) {}

  /**
   * Upload a recording, which is streamed to the platform
   *
   * @remarks Content-Length is required. An interrupted upload can be repeated.
   */
  @Post()
  @HttpCode(201)
  @RouteOptions({ body: 'stream' })
  @Idempotent()
  @ApiConsumes('audio/*', 'video/*', 'application/octet-stream')
  @ApiBody({ schema: { type: 'string', format: 'binary' } })
  @ApiCreatedResponse({ type: RecordingResponse })
  async upload(
    @RawContent() body: Readable,
    @ClientDisconnect() signal: AbortSignal,
    @Req() request: FastifyRequest,
  ): Promise<RecordingResponse> {
    const { length, mediaType } = recordingBody(request.raw.headers);
    const file = recordingFile(randomUUID(), mediaType, length);
    try {
      // No signal for sending: a sender that disconnects ends the source.
      const url = await this.uploads.send('recording', file, () => sourceOf(body), { asking: signal });
      return { url, bytes: length };
    } catch (error) {
      await dropRest(body);
      throw error;
    }
  }

  /** Get an upload URL for a recording */
  @Post('upload-url')
  @HttpCode(201)
  @Idempotent()
  async uploadUrl(
    @Body() { contentType = '', size = 0 }: RecordingUploadRequest,
    @ClientDisconnect() signal: AbortSignal,
  ): Promise<UploadAddressResponse> {
    return this.uploads.address('recording', recordingFile(randomUUID(), contentType, size), signal);
  }
}
