import type { FileToUpload } from '../platform/upload/upload-target.js';

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
 * Describes a recording to the platform. The name says nothing of the session or of anybody in it.
 *
 * @param id a UUID of its own
 * @param mediaType as the sender says; whatever is neither audio nor video travels as plain bytes
 * @param size bytes; 0 when it is not known
 */
export function recordingFile(id: string, mediaType: string, size: number): FileToUpload {
  const contentType = SOUND.test(mediaType) ? mediaType : 'application/octet-stream';
  return { fileName: `${id}.${ENDINGS[contentType] ?? 'bin'}`, contentType, size };
}
