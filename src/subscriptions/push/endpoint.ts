import { finished } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { isTlsFault } from '../../errors/tls-fault.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { type Attempt, attemptWithin, type Ways, waysOf } from '../../platform/http/connections.js';
import { retryAfterMs } from '../../platform/http/platform-answer.js';
import { ADDRESS_NOT_PUBLIC } from '../../platform/upload/public-url.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import { checkEndpointUrl, lookupFor, mayBePrivate } from './endpoint-url.js';
import { headersOf, type Message } from './message.js';

/** Why an attempt failed. */
export const PUSH_FAULTS = codesOf(WORDS.pushFault);
export type PushFault = CodeOf<'pushFault'>;

/** The outcome of an attempt. */
export interface PushAnswer {
  /** The HTTP status; null without an answer. */
  status: number | null;
  /** Null for a 2xx, which is a success with any body. */
  fault: PushFault | null;
  retryAfterMs?: number | undefined;
}

/** An endpoint. */
export interface Target {
  url: string;
  /** The secrets that sign for it. */
  secrets: readonly string[];
  /** Further headers by their names in lower case, such as its gateway needs. */
  headers: Readonly<Record<string, string>>;
}

const CONNECT_TIMEOUT_MS = 5_000;

/** Time for the whole attempt. */
export const PUSH_TIMEOUT_MS = 15_000;

/** Time to read what follows the head of an answer, so that its connection can be reused. Then it is closed. */
const REST_TIMEOUT_MS = 1_000;

/** Time after which an unused connection is closed, before most servers close it (5 s is the default of Node). */
const UNUSED_MS = 4_000;

/** Sends messages to the endpoints of the EHR, without following redirects. */
@Injectable()
export class Endpoint {
  private readonly ways: Record<'public' | 'private', Ways>;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
  ) {
    const waysFor = (isPrivate: boolean) =>
      waysOf(env, { keepAlive: true, timeout: UNUSED_MS, lookup: lookupFor(isPrivate) });
    this.ways = { public: waysFor(false), private: waysFor(true) };
  }

  /**
   * Makes one attempt to deliver a message. It takes at most 15 seconds.
   *
   * @returns undefined if `signal` ended the attempt
   */
  async deliver(
    { url, secrets, headers }: Target,
    message: Message,
    signal?: AbortSignal,
  ): Promise<PushAnswer | undefined> {
    if (checkEndpointUrl(url, this.env) !== undefined) return { status: null, fault: 'address-not-allowed' };
    const ways = this.ways[mayBePrivate(new URL(url).hostname, this.env) ? 'private' : 'public'];
    const request = {
      url,
      method: 'POST',
      data: message.body,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'user-agent': 'notebridge',
        ...headersOf(message, secrets, this.clock.now()),
      },
    };
    const bounds = { connectMs: CONNECT_TIMEOUT_MS, totalMs: PUSH_TIMEOUT_MS, signal };
    try {
      return await attemptWithin(ways, this.clock, 'push', bounds, (attempt) => this.send(attempt, request));
    } catch (error) {
      return signal?.aborted ? undefined : { status: null, fault: faultOfError(error) };
    }
  }

  /**
   * Sends a request, once more if a reused connection fails: the server may have closed it, or sent bytes after its last
   * answer. Once the head of an answer has arrived, its status decides, whatever follows.
   */
  private async send(attempt: Attempt, request: Parameters<Attempt['send']>[0]): Promise<PushAnswer> {
    const { status, headers, data } = await attempt.send(request).catch((error: unknown) => {
      if (!attempt.isReused) throw error;
      return attempt.send(request);
    });
    const wait = retryAfterMs(headers['retry-after'], this.clock.now());
    const forget = this.clock.after(REST_TIMEOUT_MS, () => data.destroy());
    // The announced body of a 204 would come as the next answer of this connection.
    if (status === 204 && !/^0?$/.test(String(headers['content-length'] ?? ''))) data.destroy();
    await finished(data.resume()).catch(() => undefined);
    forget();
    return { status, fault: faultOf(status), retryAfterMs: wait };
  }
}

function faultOf(status: number): PushFault | null {
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400 ? 'redirect' : 'error-status';
}

function faultOfError(error: unknown): PushFault {
  const reason = error instanceof PlatformError ? (error.reason ?? '') : '';
  if (reason.startsWith(ADDRESS_NOT_PUBLIC)) return 'address-not-allowed';
  if (reason.startsWith('timeout')) return 'timeout';
  if (isTlsFault(Object.assign(new Error(), { code: reason.split(' ', 1)[0] }))) return 'tls';
  return error instanceof PlatformError && error.kind === 'unreachable' ? 'no-connection' : 'no-answer';
}
