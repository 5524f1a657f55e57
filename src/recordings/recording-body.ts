import type { IncomingHttpHeaders } from 'node:http';
import { mediaTypeOf } from '../http/body/body-policy.js';
import { unsupportedMediaType } from '../http/problem/fault.js';
import { Problem } from '../http/problem/problem.js';

/** What the headers say of a recording that is about to come. */
export interface RecordingBody {
  /** Bytes. */
  length: number;
  mediaType: string;
}

/**
 * Reads the headers of a recording's upload. Its length has to be known before its first byte leaves: stores of
 * pre-signed URLs refuse chunked bodies.
 *
 * @throws {Problem} 411 `length-required`, 400 `empty-recording`, 415
 */
export function recordingBody(headers: IncomingHttpHeaders): RecordingBody {
  const mediaType = mediaTypeOf(headers['content-type']);
  if (mediaType.startsWith('multipart/')) throw unsupportedMediaType('the bare bytes of one recording');
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity') {
    throw new Problem(415, 'unsupported-encoding', 'Send the recording as it is, without Content-Encoding.');
  }
  const length = headers['content-length'];
  if (headers['transfer-encoding'] !== undefined || length === undefined) {
    throw new Problem(411, 'length-required', 'Send the recording with Content-Length, not chunked.');
  }
  if (Number(length) === 0)
    throw new Problem(400, 'empty-recording', 'The recording is empty; send its bytes as body.');
  return { length: Number(length), mediaType };
}
