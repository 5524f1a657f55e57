import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { Upload } from './upload-store.js';

const PDF_MAGIC = Buffer.from('%PDF-');

/**
 * Reads a file, counts and hashes its bytes, and stores none.
 *
 * @param breakAfterBytes stop reading after this many bytes, as if the connection broke; 0: never
 * @returns true if the file arrived completely
 */
export async function receiveUpload(upload: Upload, body: Readable, breakAfterBytes: number): Promise<boolean> {
  const hash = createHash('sha256');
  let head = Buffer.alloc(0);
  upload.attempts += 1;
  upload.bytes = 0;
  upload.sha256 = null;
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      if (head.length < PDF_MAGIC.length) head = Buffer.concat([head, chunk.subarray(0, PDF_MAGIC.length)]);
      hash.update(chunk);
      upload.bytes += chunk.length;
      if (breakAfterBytes > 0 && upload.bytes >= breakAfterBytes) return false;
    }
  } catch {
    return false; // the sender disconnected
  }
  upload.sha256 = hash.digest('hex');
  upload.isPdf = head.subarray(0, PDF_MAGIC.length).equals(PDF_MAGIC);
  return true;
}
