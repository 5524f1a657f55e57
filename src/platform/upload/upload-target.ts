import type { UploadMethod, UploadRule } from '../contract/operation-rule.js';
import type { PlatformAnswer } from '../http/platform-answer.js';
import { type CallParameters, fillHeaders } from '../http/platform-request.js';

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
  /** All that are sent beside the length. */
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
    headers: headersOf(rule?.headers ?? {}, parameters),
  };
}

/** A signed URL is good for the headers alone that it was signed with, which only the contract can tell. */
function headersOf(own: UploadRule['headers'], parameters: CallParameters): Record<string, string> {
  const texts = Object.entries(own).filter((header): header is [string, string] => header[1] !== null);
  const headers = {
    'content-type': String(parameters.contentType),
    ...fillHeaders(Object.fromEntries(texts), parameters),
  };
  const dropped = Object.keys(own).filter((name) => own[name] === null);
  for (const name of dropped) Reflect.deleteProperty(headers, name.toLowerCase());
  return headers;
}
