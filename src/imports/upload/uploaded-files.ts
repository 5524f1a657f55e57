import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { withTimeout } from '../../config/with-timeout.js';
import { bodyTooLarge } from '../../http/problem/fault.js';
import { Problem } from '../../http/problem/problem.js';
import { mediaTypeOf } from '../../text/json-text.js';

/** Maximum stored length of a file's name. */
const NAME_MAX = 200;

/** Maximum files of one import: an export may have one file per person. */
const MAX_FILES = 10_000;

/** How long an upload may be silent before it times out. */
export const STALLED_MS = 30_000;

/** One file of an import as it comes in. */
export interface UploadedFile {
  /** The sender's name for it, or the content's kind. Shown with the line number; stored encrypted only. */
  name: string;
  /** The multipart field's name; undefined for a raw body. */
  field?: string;
  mediaType: string;
  content: AsyncIterable<Buffer>;
}

/**
 * The files of a request, one after the other as they arrive: the parts of a multipart body, or the body itself.
 *
 * @param limit bytes of all files together
 * @param stalledMs how long the request may be silent, within a part or between two
 * @throws {Problem} 413 `body-too-large`, immediately if Content-Length exceeds the limit, otherwise when the limit is
 * passed; 408 `upload-stalled` or `interrupted`
 */
export async function* uploadedFiles(
  request: FastifyRequest,
  body: Readable,
  limit: number,
  stalledMs = STALLED_MS,
): AsyncGenerator<UploadedFile> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw bodyTooLarge();
  const limitBytes = byteLimiter(limit);
  const broken = brokenOff(request);
  if (!request.isMultipart()) {
    const mediaType = mediaTypeOf(request.headers['content-type']);
    yield { name: mediaType || 'body', mediaType, content: limitBytes(withIdleTimeout(body, stalledMs, broken)) };
    return;
  }
  const names = new Set<string>();
  // Each part is one file, because some senders omit the filename.
  const options = { limits: { fileSize: limit, files: MAX_FILES }, isPartAFile: () => true };
  for await (const part of withIdleTimeout(request.parts(options), stalledMs, broken)) {
    if (part.type !== 'file') continue;
    yield {
      name: uniqueName(part.filename || part.fieldname, names),
      field: part.fieldname,
      mediaType: mediaTypeOf(part.mimetype),
      content: limitBytes(withIdleTimeout(part.file, stalledMs, broken)),
    };
  }
}

/** Rejects with 408 `interrupted` when the sender hangs up before the end. */
function brokenOff({ raw }: FastifyRequest): Promise<never> {
  const detail = 'The connection closed before the end of the upload, so nothing was imported. Upload the files again.';
  const broken = new Promise<never>((_resolve, reject) => {
    const check = () => void (raw.complete || reject(new Problem('interrupted', detail)));
    if (raw.destroyed) check();
    else raw.once('close', check);
  });
  broken.catch(() => undefined);
  return broken;
}

/**
 * Passes on the parts or chunks of an upload as they arrive. @throws {Problem} 408 `upload-stalled` after a silence
 *
 * @param broken rejects when the sender disconnects, because the parts of a multipart body would never arrive
 */
export async function* withIdleTimeout<T>(
  source: AsyncIterable<T>,
  stalledMs = STALLED_MS,
  broken?: Promise<never>,
): AsyncGenerator<T> {
  const detail = `No byte of the upload came for ${stalledMs / 1_000} seconds. Send it again.`;
  const stalled = () => {
    throw new Problem('upload-stalled', detail);
  };
  const items = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const coming = items.next();
      const next = await withTimeout(broken ? Promise.race([coming, broken]) : coming, stalledMs, stalled);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Not awaited: a sender that is silent, or has hung up, would keep it waiting.
    void items.return?.()?.catch(() => undefined);
  }
}

/**
 * Makes a limiter of the total bytes of all streams that are passed to it.
 *
 * @throws {Problem} 413 when one exceeds it
 */
function byteLimiter(limit: number): (content: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  let bytes = 0;
  return async function* limited(content) {
    for await (const chunk of content) {
      bytes += chunk.length;
      if (bytes > limit) throw bodyTooLarge();
      yield chunk;
    }
  };
}

/** Rows are known by their file's name and line: no two files have one name. */
function uniqueName(given: string, names: Set<string>): string {
  const base = given.replace(/\p{Cc}/gu, ' ').slice(0, NAME_MAX);
  let name = base;
  for (let copy = 2; names.has(name); copy++) name = `${base} (${copy})`;
  names.add(name);
  return name;
}

/** Bytes of a file's beginning that are used to detect its kind. */
const BEGINNING = 64 * 1024;

/** Reads the beginning of a file. @returns it, and the whole file including it */
export async function peek(
  content: AsyncIterable<Buffer>,
): Promise<{ beginning: Buffer; whole: AsyncIterable<Buffer> }> {
  const chunks: Buffer[] = [];
  const rest = content[Symbol.asyncIterator]();
  let size = 0;
  let isOver = false;
  while (size < BEGINNING && !isOver) {
    const { value, done } = await rest.next();
    isOver = done === true;
    if (isOver) break;
    chunks.push(value as Buffer);
    size += (value as Buffer).length;
  }
  async function* whole(): AsyncGenerator<Buffer> {
    try {
      yield* chunks.splice(0);
      if (!isOver) yield* { [Symbol.asyncIterator]: () => rest };
    } finally {
      await rest.return?.();
    }
  }
  return { beginning: Buffer.concat(chunks), whole: whole() };
}
