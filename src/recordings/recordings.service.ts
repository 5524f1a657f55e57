import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { Env } from '../config/env.js';
import { dropRest, sourceOf } from '../http/request/request-source.js';
import { FileUploads } from '../platform/clients/file-uploads.js';
import { requireCapability } from '../platform/contract/capabilities.js';
import { Contract } from '../platform/contract/contract.js';
import { type RecordingBody, recordingFile } from './recording-file.js';
import type { RecordingResponse, RecordingUploadResponse } from './recordings.dto.js';

/** Brings recordings to the platform's store; nothing of them is kept here. */
@Injectable()
export class RecordingsService {
  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly uploads: FileUploads,
    private readonly audit: Audit,
  ) {}

  /**
   * Streams a recording to the store at the pace of the slower side.
   *
   * @throws {Problem} 501 `not-configured`, 499 `upload-broken-off`, 502 `upload-refused` or `upload-failed`, 503, 504
   */
  async upload(
    request: Readable,
    { length, mediaType }: RecordingBody,
    signal: AbortSignal,
  ): Promise<RecordingResponse> {
    requireCapability('recording-upload', this.contract, this.env);
    const file = recordingFile(randomUUID(), mediaType, length);
    try {
      await this.audit.commitBegun();
      // No signal for sending: a sender that disconnects ends the source.
      const url = await this.uploads.send('recording', file, () => sourceOf(request), { asking: signal });
      return { url, bytes: length };
    } catch (error) {
      await dropRest(request);
      throw error;
    }
  }

  /** Hands out an address to which the EHR itself sends a recording. @throws {Problem} 501 `not-configured`, 503, 504 */
  async uploadUrl(contentType: string, size: number, signal: AbortSignal): Promise<RecordingUploadResponse> {
    requireCapability('recording-upload', this.contract, this.env);
    const file = recordingFile(randomUUID(), contentType, size);
    await this.audit.commitBegun();
    return this.uploads.address('recording', file, signal);
  }
}
