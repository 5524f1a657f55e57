import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { mediaTypeOf } from '../../http/body/body-policy.js';
import { bodyTooLarge } from '../../http/problem/fault.js';
import { STALLED_MS, signsOfLife } from './idle-timeout.js';
import type { UploadedFile } from './upload-parts.js';

/** Characters of a file's name that are kept. */
const NAME_MAX = 200;

/** Files of one import: an export in resources of their own may be one for each person. */
const MOST_FILES = 10_000;

/**
 * The files of a request, one after the other as they arrive: the parts of a multipart body, or the body itself.
 *
 * @param limit bytes of all files together
 * @param stalledMs milliseconds without a byte after which the request is given up, wherever it stands
 * @throws {Problem} 413 `body-too-large`, at once when the request says so itself, else where the limit is passed;
 * 408 `upload-stalled`
 */
export async function* uploadedFiles(
  request: FastifyRequest,
  body: Readable,
  limit: number,
  stalledMs = STALLED_MS,
): AsyncGenerator<UploadedFile> {
  if (Number(request.headers['content-length'] ?? 0) > limit) throw bodyTooLarge();
  const count = counting(limit);
  if (!request.isMultipart()) {
    const mediaType = mediaTypeOf(request.headers['content-type']);
    yield { name: mediaType || 'body', mediaType, content: count(signsOfLife(body, stalledMs)) };
    return;
  }
  const names = new Set<string>();
  const broken = brokenOff(request);
  // Whether a part has a filename is the sender's habit: each of them is one file.
  const options = { limits: { fileSize: limit, files: MOST_FILES }, isPartAFile: () => true };
  for await (const part of signsOfLife(unless(broken, request.parts(options)), stalledMs)) {
    if (part.type !== 'file') continue;
    yield {
      name: uniqueName(part.filename || part.fieldname, names),
      field: part.fieldname,
      mediaType: mediaTypeOf(part.mimetype),
      content: count(signsOfLife(unless(broken, part.file), stalledMs)),
    };
  }
}

/** Rejects when the sender hangs up before the end. */
function brokenOff({ raw }: FastifyRequest): Promise<never> {
  const broken = new Promise<never>((_resolve, reject) => {
    const judge = () => {
      if (!raw.complete) reject(new Error('The upload broke off.'));
    };
    if (raw.destroyed) judge();
    else raw.once('close', judge);
  });
  broken.catch(() => undefined);
  return broken;
}

/** What a source gives, until something broke: the parts of a multipart body would be waited for in vain. */
async function* unless<T>(broken: Promise<never>, source: AsyncIterable<T>): AsyncGenerator<T> {
  const items = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([items.next(), broken]);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Not awaited: what is broken would keep it waiting.
    void items.return?.()?.catch(() => undefined);
  }
}

/** Counts the bytes of all streams that it is given. */
function counting(limit: number): (content: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  let bytes = 0;
  return async function* counted(content) {
    for await (const chunk of content) {
      bytes += chunk.length;
      if (bytes > limit) throw bodyTooLarge();
      yield chunk;
    }
  };
}

/** Rows are told apart by their file's name and line: no two files have one name. */
function uniqueName(given: string, names: Set<string>): string {
  const base = given.replace(/\p{Cc}/gu, ' ').slice(0, NAME_MAX);
  let name = base;
  for (let turn = 2; names.has(name); turn++) name = `${base} (${turn})`;
  names.add(name);
  return name;
}
