import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Problem } from '../../http/problem/problem.js';
import { PlatformError, platformProblem } from '../contract/platform-errors.js';
import { attemptWithin, type Ways, waysOf } from '../http/connections.js';
import { errorForAnswer } from '../http/platform-answer.js';
import { ADDRESS_NOT_PUBLIC, checkPublicUrl, guardedLookup } from './public-url.js';

interface UploadOptions {
  /** The exact size in bytes, because stores of pre-signed URLs reject chunked bodies. */
  contentLength: number;
  method: 'PUT' | 'POST';
  /** All headers except the length. */
  headers: Record<string, string>;
  signal?: AbortSignal;
  /** Maximum time without a byte in either direction. Defaults to a minute. */
  idleMs?: number;
}

/** Thrown when the source ends early or has another length than announced. The store is not at fault. */
export class UploadSourceError extends Error {
  override readonly name = 'UploadSourceError';

  constructor() {
    super('The file ended early, or had another length than announced. Send it again.');
  }
}

const CONNECT_TIMEOUT_MS = 5_000;
const IDLE_MS = 60_000;

/** Streams files to upload URLs with back-pressure and without the API key. Never follows redirects. */
@Injectable()
export class UploadStream {
  private readonly ways: Ways;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
  ) {
    this.ways = waysOf(env, { lookup: guardedLookup(env) });
  }

  /**
   * Streams a file to a URL from the platform. Always destroys the source.
   *
   * @throws {PlatformError} if the store fails; `rejected` also if the URL is not public or no longer valid
   * @throws {UploadSourceError} if the source fails or has another length
   */
  async uploadTo(url: string, source: Readable, options: UploadOptions): Promise<void> {
    const fault = checkPublicUrl(url, this.env);
    if (fault !== undefined) {
      source.destroy();
      throw new PlatformError('rejected', 'upload', { reason: `the upload address ${fault}` });
    }
    const { contentLength, method, headers, signal, idleMs = IDLE_MS } = options;
    const body = Readable.from(exactly(source, contentLength), { objectMode: false });
    body.on('error', () => undefined);
    const request = { url, method, headers: { ...headers, 'content-length': contentLength }, data: body };
    try {
      const bounds = { connectMs: CONNECT_TIMEOUT_MS, signal };
      await attemptWithin(this.ways, this.clock, 'upload', bounds, async (attempt) => {
        const { status, headers: answered, data } = await attempt.send({ ...request, timeout: idleMs });
        // The status is enough.
        data.on('error', () => undefined).destroy();
        // A store that has all bytes may answer before the source says that there are no more.
        if (status < 300) await finished(body.resume());
        if (status >= 200 && status < 300) return;
        throw errorForAnswer('upload', { status, retryAfter: answered['retry-after'] }, this.clock.now());
      });
    } catch (error) {
      if (body.errored instanceof UploadSourceError) throw body.errored;
      if (!(error instanceof PlatformError) || !error.reason?.startsWith(ADDRESS_NOT_PUBLIC)) throw error;
      throw new PlatformError('rejected', 'upload', { reason: ADDRESS_NOT_PUBLIC });
    } finally {
      source.destroy();
    }
  }
}

/** Passes the bytes of a source on. @throws {UploadSourceError} if it fails, or their number differs from `length` */
async function* exactly(source: Readable, length: number): AsyncGenerator<Buffer> {
  let left = length;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      left -= chunk.length;
      if (left < 0) break;
      yield chunk;
    }
  } catch {
    throw new UploadSourceError();
  }
  if (left !== 0) throw new UploadSourceError();
}

/** Converts the error of an upload to a problem; returns other errors unchanged. */
export function uploadProblem(error: unknown): unknown {
  if (error instanceof UploadSourceError) return new Problem('upload-broken-off', error.message);
  const kind = error instanceof PlatformError && error.operation === 'upload' ? error.kind : undefined;
  if (kind === 'rejected')
    return new Problem('upload-refused', "The platform's store rejected the file. Send it again.");
  if (kind !== 'unreachable' && kind !== 'unknown-outcome') return platformProblem(error);
  return new Problem('upload-failed', "The platform's store did not receive all of the file. Send it again.");
}
