import type { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { Audit } from '../../audit/audit.js';
import { Env } from '../../config/env.js';
import { requireCapability } from '../contract/capabilities.js';
import { Contract } from '../contract/contract.js';
import { PlatformError } from '../contract/platform-errors.js';
import { RequestCalls } from '../pauses/request-calls.js';
import { type FileKind, HandedOutUrls } from '../upload/handed-out-urls.js';
import { checkPublicUrl } from '../upload/public-url.js';
import { UploadStream, uploadProblem } from '../upload/upload-stream.js';
import { PlatformClient, type UploadFile } from './platform-client.js';
import type { UploadAddressResponse } from './upload-address.dto.js';

/** The capability and the operation that return an upload URL for each kind of file. */
const KINDS = {
  recording: { capability: 'recording-upload', operation: 'recordingUploadUrl' },
  compliance: { capability: 'compliance-upload', operation: 'complianceUploadUrl' },
} as const;

/** Uploads files to the platform's store. Requests accept their URLs afterwards. */
@Injectable()
export class FileUploads {
  constructor(
    private readonly platform: PlatformClient,
    private readonly calls: RequestCalls,
    private readonly uploads: UploadStream,
    private readonly handedOut: HandedOutUrls,
    private readonly contract: Contract,
    private readonly env: Env,
    private readonly audit: Audit,
  ) {}

  /**
   * Requests an address to which a file can be sent, and checks it, because the EHR or a browser sends the file there.
   * Commits the audit entry of the request before.
   *
   * @throws {Problem} 501 `not-configured`, 503, 504
   */
  async address(kind: FileKind, file: UploadFile, signal: AbortSignal): Promise<UploadAddressResponse> {
    const { capability, operation } = KINDS[kind];
    requireCapability(capability, this.contract, this.env);
    await this.audit.commitIntent();
    const ask = () => this.platform.uploadTarget(operation, file, { signal });
    const address = await this.calls.make(operation, file.fileName, ask, signal).catch(fail);
    const fault = checkPublicUrl(address.uploadUrl, this.env);
    if (fault !== undefined) {
      const reason = `an upload address that is unsafe: it ${fault}`;
      return fail(new PlatformError('unknown-outcome', operation, { reason }));
    }
    await this.handedOut.remember(kind, address.url);
    return address;
  }

  /**
   * Sends a file of known size.
   *
   * @param signals `sending` is missing if the source ends with its sender, because the store is not at fault then
   * @returns the URL that identifies it
   * @throws {Problem} 499 `upload-broken-off`, 502 `upload-refused` or `upload-failed`, or as {@link address}
   */
  async send(
    kind: FileKind,
    file: UploadFile,
    source: () => Readable,
    signals: { asking: AbortSignal; sending?: AbortSignal },
  ): Promise<string> {
    const { uploadUrl, method, headers, url } = await this.address(kind, file, signals.asking);
    const options = { contentLength: file.size, method, headers, signal: signals.sending };
    await this.uploads.uploadTo(uploadUrl, source(), options).catch(fail);
    return url;
  }
}

function fail(error: unknown): never {
  throw uploadProblem(error);
}
