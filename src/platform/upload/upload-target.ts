import type { Contract } from '../contract/contract.js';
import type { UploadMethod } from '../contract/operations.js';
import type { CallOptions, PlatformHttp } from '../http/platform-http.js';
import { fillHeaders } from '../http/platform-request.js';

/** A file for which an upload URL is asked, its size in bytes. The name must not hold personal data: the platform gets it. */
export type FileToUpload = { fileName: string; contentType: string; size: number };

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

/**
 * Asks the platform where a file is to be sent.
 *
 * @throws {PlatformError} `unknown-outcome` when an address is missing or not complete
 */
export async function requestUploadTarget(
  operation: 'recordingUploadUrl' | 'complianceUploadUrl',
  file: FileToUpload,
  { http, contract, options }: { http: PlatformHttp; contract: Contract; options: CallOptions },
): Promise<UploadTarget> {
  const answer = await http.call({ operation, parameters: file, ...options });
  const address = (name: string) => {
    const text = answer.requiredText(name);
    return URL.canParse(text) ? text : answer.unreadable(`no complete address at ${answer.placeOf(name)}`);
  };
  const { method, headers = {} } = contract.operations[operation].upload ?? {};
  // A signed URL is good for the headers alone that it was signed with, which only the contract knows.
  const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sent = new Map<string, string | null>([['content-type', '{contentType}'], ...own]);
  const kept = [...sent].flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  return {
    uploadUrl: address('uploadUrl'),
    fileUrl: address('fileUrl'),
    method,
    headers: fillHeaders(Object.fromEntries(kept), file),
  };
}
