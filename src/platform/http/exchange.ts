import { buffer } from 'node:stream/consumers';
import { AxiosError } from 'axios';
import type { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import { decodeText, mediaTypeOf } from '../../text/json-text.js';
import type { Contract } from '../contract/contract.js';
import { factsOf, type OperationName } from '../contract/operations.js';
import { PlatformError } from '../contract/platform-errors.js';
import { attemptWithin, type Bounds, type Ways } from './connections.js';
import { errorForAnswer, PlatformAnswer } from './platform-answer.js';

/** A request as it is sent. */
export interface PlatformRequest {
  method: string;
  url: string;
  headers: Record<string, string>;
  data: string | undefined;
}

interface ExchangeOptions extends Omit<Bounds, 'totalMs'> {
  env: Pick<Env, 'PLATFORM_TIMEOUT_SECONDS' | 'PLATFORM_ANSWER_LIMIT'>;
  contract: Contract;
  clock: Clock;
  ways: Ways;
}

/** Makes one HTTP attempt, without retries and redirects. @throws {PlatformError} for any outcome but a 2xx answer */
export async function exchange(
  operation: OperationName,
  request: PlatformRequest,
  { env, contract, clock, ways, connectMs, signal }: ExchangeOptions,
): Promise<PlatformAnswer> {
  const maxContentLength = env.PLATFORM_ANSWER_LIMIT;
  const bounds = { connectMs, totalMs: env.PLATFORM_TIMEOUT_SECONDS * 1_000, signal };
  const { status, headers, bytes } = await attemptWithin(ways, clock, operation, bounds, async (attempt) => {
    const { data, ...answer } = await attempt.send({ ...request, maxContentLength });
    return { ...answer, bytes: await buffer(data).catch(undefinedIfTooLong) };
  });
  const text = bytes && decodeText(bytes);
  const type = mediaTypeOf(String(headers['content-type'] ?? ''));
  // APIs do not answer with a web page, so this is another server, or a URL that the platform does not know.
  const isPage = type === 'text/html' || /^\s*<(?:!doctype html|html)\b/i.test(text ?? '');
  if (status < 200 || status >= 300) {
    const answer = { status, retryAfter: headers['retry-after'], text, isPage };
    throw errorForAnswer(operation, answer, clock.now(), contract.errors.message);
  }
  const unreadable = (reason: string, isWrongAddress = false) =>
    new PlatformError('unknown-outcome', operation, { status, reason, isWrongAddress });
  // A gateway may send a page after the platform created something.
  if (isPage) throw unreadable('a web page instead of an answer', !factsOf(operation).creates);
  if (!bytes) throw unreadable(`an answer of more than PLATFORM_ANSWER_LIMIT, ${maxContentLength} bytes`);
  return new PlatformAnswer(operation, status, text, contract);
}

/** @returns undefined for the error of axios about an answer that is longer than `maxContentLength` */
function undefinedIfTooLong(error: unknown): undefined {
  if (!(error instanceof AxiosError) || error.code !== AxiosError.ERR_BAD_RESPONSE) throw error;
}
