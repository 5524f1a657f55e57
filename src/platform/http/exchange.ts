import type { Readable } from 'node:stream';
import axios from 'axios';
import type { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import { charsetOf, mediaTypeOf } from '../../text/json-text.js';
import type { Contract } from '../contract/contract.js';
import { factsOf, type OperationName } from '../contract/operations.js';
import { PlatformError } from '../contract/platform-errors.js';
import { type resettableAgents, sendWithin } from './connections.js';
import { type AnswerBytes, errorForAnswer, MAX_ERROR_BYTES } from './platform-answer.js';

/** A request as it is sent. */
type PlatformRequest = {
  method: string;
  url: string;
  headers: Record<string, string>;
  data: string | undefined;
};

/** The settings of an exchange, and its limits. */
interface ExchangeOptions {
  env: Pick<Env, 'PLATFORM_TIMEOUT_SECONDS' | 'PLATFORM_ANSWER_LIMIT'>;
  contract: Contract;
  clock: Clock;
  agents: ReturnType<typeof resettableAgents>;
  connectMs: number;
  signal?: AbortSignal | undefined;
}

/**
 * Makes one HTTP attempt, without retries and redirects. axios is hidden from other files.
 *
 * @returns a 2xx answer
 * @throws {PlatformError} for any other outcome
 */
export async function exchange(
  operation: OperationName,
  request: PlatformRequest,
  { env, contract, clock, agents, connectMs, signal }: ExchangeOptions,
): Promise<{ status: number; content: AnswerBytes }> {
  const bounds = { connectMs, totalMs: env.PLATFORM_TIMEOUT_SECONDS * 1_000, signal };
  const { status, headers, bytes } = await sendWithin(clock, operation, bounds, async (transport, stop) => {
    const { data, ...answer } = await axios.request<Readable>({
      ...request,
      headers: { 'user-agent': 'notebridge', 'content-type': false, ...request.headers },
      responseType: 'stream',
      transformRequest: [],
      transformResponse: [],
      validateStatus: () => true,
      maxRedirects: 0,
      proxy: false,
      signal: stop,
      transport,
      ...agents,
    });
    const limit = isSuccess(answer.status) ? env.PLATFORM_ANSWER_LIMIT : MAX_ERROR_BYTES;
    return { ...answer, bytes: await bytesOf(data, limit) };
  });
  const header = (name: string) => (typeof headers[name] === 'string' ? headers[name] : undefined);
  const contentType = header('content-type');
  const content = bytes && { bytes, charset: charsetOf(contentType) };
  // APIs do not answer with a web page, so this is another server, or a URL that the platform does not know.
  const isPage = isHtml(contentType, bytes);
  if (!isSuccess(status)) {
    const answer = { status, retryAfter: header('retry-after'), content, isPage };
    throw errorForAnswer(operation, answer, clock.now(), contract.errors.message);
  }
  const unreadable = (reason: string, isWrongAddress = false) =>
    new PlatformError('unknown-outcome', operation, { status, reason, isWrongAddress });
  // A gateway may send a page after the platform created something.
  if (isPage) throw unreadable('a web page instead of an answer', !factsOf(operation).creates);
  if (!content) throw unreadable(`an answer of more than PLATFORM_ANSWER_LIMIT, ${env.PLATFORM_ANSWER_LIMIT} bytes`);
  return { status, content };
}

const isSuccess = (status: number) => status >= 200 && status < 300;

/** Reads an answer. @returns undefined if it is longer than the limit; the rest is not read, and the connection closed */
export async function bytesOf(answer: Readable, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > limit) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function isHtml(contentType: string | undefined, bytes: Buffer | undefined): boolean {
  const beginning = bytes?.toString('latin1', 0, 200).trimStart() ?? '';
  return mediaTypeOf(contentType) === 'text/html' || /^<(?:!doctype html|html)\b/i.test(beginning);
}
