import type { UploadMethod, UploadRule } from './operation-rule.js';
import type { PlatformAnswer } from './platform-answer.js';
import { type CallParameters, fillHeaders } from './platform-request.js';

/** A file for which an upload URL is asked. The name travels to the platform: it must not hold personal data. */
export interface FileToUpload {
  fileName: string;
  contentType: string;
  /** Bytes. */
  size: number;
}

/** Where and how a file is sent. */
export interface UploadTarget {
  uploadUrl: string;
  /** How the file is named to the platform afterwards; may equal the upload URL. */
  fileUrl: string;
  /** Undefined when the contract does not say it. */
  method: UploadMethod | undefined;
  headers: Record<string, string>;
}

/** The placeholders that describe a file. */
export function uploadParameters({ fileName, contentType, size }: FileToUpload): CallParameters {
  return { fileName, contentType, size };
}

/**
 * Reads an upload URL from an answer.
 *
 * @throws {PlatformError} `unknown-outcome` when an address is missing or not complete
 */
export function uploadTarget(
  answer: PlatformAnswer,
  rule: UploadRule | undefined,
  parameters: CallParameters,
): UploadTarget {
  const address = (name: string) => {
    const text = answer.requiredText(name);
    return URL.canParse(text) ? text : answer.unreadable(`no complete address at ${answer.placeOf(name)}`);
  };
  return {
    uploadUrl: address('uploadUrl'),
    fileUrl: address('fileUrl'),
    method: rule?.method,
    headers: fillHeaders(rule?.headers ?? {}, parameters),
  };
}
