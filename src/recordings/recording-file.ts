import type { IncomingHttpHeaders } from 'node:http';
import { unsupportedMediaType } from '../http/problem/fault.js';
import { Problem } from '../http/problem/problem.js';
import { mediaTypeOf } from '../text/json-text.js';

const ENDINGS: Record<string, string> = {
  'audio/aac': 'aac',
  'audio/flac': 'flac',
  'audio/m4a': 'm4a',
  'audio/mp4': 'm4a',
  'audio/mpeg': 'mp3',
  'audio/ogg': 'ogg',
  'audio/wav': 'wav',
  'audio/wave': 'wav',
  'audio/webm': 'webm',
  'audio/x-m4a': 'm4a',
  'audio/x-wav': 'wav',
  'video/mp4': 'mp4',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
};
const SOUND = /^(audio|video)\/[a-z0-9.+-]{1,60}$/;

/**
 * Describes a recording to the platform. Its name reveals neither the session nor a person.
 *
 * @param id a new UUID
 * @param mediaType the sender's; any type other than audio and video is sent as plain bytes
 * @param size bytes; 0 if unknown
 */
export function recordingFile(id: string, mediaType: string, size: number) {
  const contentType = SOUND.test(mediaType) ? mediaType : 'application/octet-stream';
  return { fileName: `${id}.${ENDINGS[contentType] ?? 'bin'}`, contentType, size };
}

/**
 * Reads the length in bytes and the media type of an incoming recording from its headers. The length has to be known
 * before the first byte leaves: stores of pre-signed URLs refuse chunked bodies.
 *
 * @throws {Problem} 411 `length-required`, 400 `empty-recording`, 415
 */
export function recordingBody(headers: IncomingHttpHeaders) {
  const mediaType = mediaTypeOf(headers['content-type']);
  if (mediaType.startsWith('multipart/')) throw unsupportedMediaType('the bare bytes of one recording');
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (encoding !== 'identity') {
    throw new Problem(
      'unsupported-encoding',
      'The recording must not be compressed. Send it without Content-Encoding.',
    );
  }
  const length = headers['content-length'];
  if (headers['transfer-encoding'] !== undefined || length === undefined) {
    throw new Problem('length-required', 'Send the recording with Content-Length, not chunked.');
  }
  if (Number(length) === 0) throw new Problem('empty-recording', 'The recording is empty. Send its bytes as the body.');
  return { length: Number(length), mediaType };
}
