import type { ClientRequest, IncomingMessage } from 'node:http';
import type { AgentOptions, RequestOptions } from 'node:https';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { urlToHttpOptions } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { codeOf } from '../../errors/error-code.js';
import { Problem } from '../../http/problem/problem.js';
import { charsetOf } from '../../text/json-text.js';
import { PlatformError, platformProblem } from '../contract/platform-errors.js';
import { type ConnectionWatch, resettableAgents, sendWithin } from '../http/connections.js';
import { bytesOf } from '../http/exchange.js';
import { errorForAnswer, MAX_ERROR_BYTES } from '../http/platform-answer.js';
import { ADDRESS_NOT_PUBLIC, checkPublicUrl, guardedLookup } from './public-url.js';

/** Options of an upload. */
interface UploadOptions {
  /** The exact size in bytes, because stores of pre-signed URLs reject chunked bodies. */
  contentLength: number;
  /** Defaults to PUT. */
  method?: 'PUT' | 'POST';
  /** All headers except the length. */
  headers?: Record<string, string>;
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
  private readonly agents: ReturnType<typeof resettableAgents>;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
  ) {
    this.agents = resettableAgents({ keepAlive: false, lookup: guardedLookup(env) } as AgentOptions, env);
  }

  /**
   * Streams a file to a URL from the platform. Always destroys the source.
   *
   * @throws {PlatformError} if the store fails; `rejected` also if the URL is not public or no longer valid
   * @throws {UploadSourceError} if the source fails or has another length
   */
  async uploadTo(url: string, source: Readable, { signal, ...options }: UploadOptions): Promise<void> {
    const fault = checkPublicUrl(url, this.env);
    if (fault !== undefined) {
      source.destroy();
      throw new PlatformError('rejected', 'upload', { reason: `the upload address ${fault}` });
    }
    const { httpAgent, httpsAgent } = this.agents;
    const target = new URL(url);
    const fit = { ...urlToHttpOptions(target), agent: target.protocol === 'https:' ? httpsAgent : httpAgent };
    const bounds = { connectMs: CONNECT_TIMEOUT_MS, signal };
    const answer = await sendWithin(this.clock, 'upload', bounds, (connection, stop) =>
      this.send(connection, { ...fit, signal: stop }, source, options),
    );
    if (answer === 'source-broken') throw new UploadSourceError();
    if (answer.status < 200 || answer.status >= 300) throw errorForAnswer('upload', answer, this.clock.now());
  }

  private async send(
    connection: ConnectionWatch,
    to: RequestOptions,
    source: Readable,
    { contentLength, method = 'PUT', headers, idleMs = IDLE_MS }: UploadOptions,
  ): Promise<StoreAnswer | 'source-broken'> {
    const broken = brokenSource(source);
    const counted = exactly(contentLength);
    counted.once('error', broken.blameSource);
    let request: ClientRequest | undefined;
    try {
      const answer = new Promise<StoreAnswer>((resolve, reject) => {
        request = connection.request(
          { ...to, method, headers: { ...headers, 'content-length': contentLength } },
          (response) => resolve(readAnswer(response)),
        );
        request.once('error', broken.blameStore).once('error', reject);
        request.setTimeout(idleMs, () => request?.destroy(Object.assign(new Error('idle'), { code: 'IDLE_TIMEOUT' })));
      });
      answer.catch(() => undefined);
      if (!request) return await answer;
      const sent = pipeline(source, counted, request);
      sent.catch(() => undefined);
      const first = await Promise.race([answer, sent.then(() => answer)]);
      if (first.status < 300) await sent;
      return first;
    } catch (error) {
      if (broken.bySource()) return 'source-broken';
      if (codeOf(error) !== ADDRESS_NOT_PUBLIC) throw error;
      throw new PlatformError('rejected', 'upload', { reason: ADDRESS_NOT_PUBLIC });
    } finally {
      request?.destroy();
      source.destroy();
    }
  }
}

/** Remembers which end failed first, because its failure ends the other one, too. */
function brokenSource(source: Readable) {
  let blamed: 'source' | 'store' | undefined = source.destroyed ? 'source' : undefined;
  const blame = (end: 'source' | 'store') => () => {
    blamed ??= end;
  };
  const blameSource = blame('source');
  source.once('error', blameSource);
  source.once('close', () => {
    if (!source.readableEnded) blameSource();
  });
  return { blameSource, blameStore: blame('store'), bySource: () => blamed === 'source' };
}

/** Passes bytes on. Fails if their number differs from `length`. */
function exactly(length: number): Transform {
  let left = length;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      if (left < 0) done(new UploadSourceError());
      else done(null, chunk);
    },
    flush(done) {
      done(left === 0 ? null : new UploadSourceError());
    },
  });
}

type StoreAnswer = Awaited<ReturnType<typeof readAnswer>>;

async function readAnswer(response: IncomingMessage) {
  const { statusCode: status = 0, headers } = response;
  // The status is enough, even if the rest is too long or does not come.
  const bytes = await bytesOf(response, MAX_ERROR_BYTES).catch(() => undefined);
  return {
    status,
    retryAfter: headers['retry-after'],
    content: bytes && { bytes, charset: charsetOf(headers['content-type']) },
  };
}

/** Converts the error of an upload to a problem; returns other errors unchanged. @param what such as "the recording" */
export function uploadProblem(error: unknown, what: string): unknown {
  if (error instanceof UploadSourceError) {
    return new Problem('upload-broken-off', `The upload of ${what} ended early. Send it again.`);
  }
  if (!(error instanceof PlatformError) || error.operation !== 'upload') return platformProblem(error, what);
  if (error.kind === 'rejected') {
    return new Problem('upload-refused', `The platform's store rejected ${what}. Send it again.`);
  }
  if (error.kind !== 'unreachable' && error.kind !== 'unknown-outcome') return platformProblem(error, what);
  return new Problem('upload-failed', `The platform's store did not receive all of ${what}. Send it again.`);
}
