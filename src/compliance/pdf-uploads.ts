import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Audit } from '../access/audit/audit.js';
import { Problem } from '../http/problem/problem.js';
import { PlatformClient } from '../platform/clients/platform-client.js';
import type { ComplianceFile } from '../platform/contract/wire-types.js';
import { HandedOutUrls } from '../platform/upload/handed-out-urls.js';
import { UploadStream, uploadProblem } from '../platform/upload/upload-stream.js';
import type { ComplianceUploadResponse } from './compliance.dto.js';

/** PDFs on their way to the platform's store. */
@Injectable()
export class PdfUploads {
  constructor(
    private readonly platform: PlatformClient,
    private readonly uploads: UploadStream,
    private readonly handedOut: HandedOutUrls,
    private readonly audit: Audit,
  ) {}

  /** Returns an upload address for one PDF. @param size in bytes; 0 if unknown */
  async uploadUrl(size: number, signal: AbortSignal): Promise<ComplianceUploadResponse> {
    await this.audit.commitBegun();
    const { fileUrl: url, ...target } = await this.target(size, signal).catch(refuse);
    await this.handedOut.remember('compliance', url);
    return { ...target, url };
  }

  /** Uploads one PDF. @returns the URL that identifies it in a job */
  async upload(pdf: Buffer, signal: AbortSignal): Promise<string> {
    const { uploadUrl, fileUrl, method, headers } = await this.target(pdf.length, signal).catch(refuse);
    const options = { contentLength: pdf.length, headers, signal, method };
    await this.uploads.uploadTo(uploadUrl, Readable.from([pdf]), options).catch(refuse);
    return fileUrl;
  }

  /**
   * Rejects files whose URL did not come from {@link uploadUrl} (spec, Compliance job submission).
   *
   * @throws {Problem} 422 `url-not-allowed`
   */
  async checkUrls(files: readonly ComplianceFile[]): Promise<void> {
    const urls = files.map(({ url }) => url);
    const known = await this.handedOut.known('compliance', urls);
    const position = urls.findIndex((url) => !known.has(url));
    if (position === -1) return;
    const detail = `The url of the file at position ${position} did not come from POST /v1/compliance/upload-url. Upload the file there, then send the url of that answer.`;
    throw new Problem(422, 'url-not-allowed', detail, { pointer: `/files/${position}/url` });
  }

  private target(size: number, signal: AbortSignal) {
    const file = { fileName: `${randomUUID()}.pdf`, contentType: 'application/pdf', size };
    return this.platform.uploadTarget('complianceUploadUrl', file, { signal });
  }
}

function refuse(error: unknown): never {
  throw uploadProblem(error, 'a file');
}
