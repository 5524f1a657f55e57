import type { ClientRequest, IncomingMessage } from 'node:http';
import type { AgentOptions, RequestOptions } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { codeOf } from '../../errors/error-code.js';
import { isTlsFault } from '../../errors/tls-fault.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { type ConnectionWatch, resettableAgents, sendWithin } from '../../platform/http/connections.js';
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

/** An endpoint, and the secrets that sign for it. */
interface Target {
  url: string;
  secrets: readonly string[];
}

const CONNECT_TIMEOUT_MS = 5_000;

/** Time for the whole attempt. */
export const PUSH_TIMEOUT_MS = 15_000;

/** Maximum bytes read of an answer, so that its connection can be reused. A longer answer closes the connection. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Time for the rest of an answer, whose status already counts. A slower one closes the connection. */
const REST_TIMEOUT_MS = 1_000;

/** Time after which an unused connection is closed, before most servers close it (5 s is the default of Node). */
const UNUSED_MS = 4_000;

/** Sends messages to the endpoints of the EHR, without following redirects. */
@Injectable()
export class Endpoint {
  private readonly agents: Record<'public' | 'private', ReturnType<typeof resettableAgents>>;

  constructor(
    private readonly env: Env,
    private readonly clock: Clock,
  ) {
    const agentsFor = (isPrivate: boolean) => {
      const options = { keepAlive: true, timeout: UNUSED_MS, lookup: lookupFor(isPrivate) };
      return resettableAgents(options as AgentOptions, env);
    };
    this.agents = { public: agentsFor(false), private: agentsFor(true) };
  }

  /**
   * Makes one attempt to deliver a message. It takes at most 15 seconds.
   *
   * @returns undefined if `signal` ended the attempt
   */
  async deliver({ url, secrets }: Target, message: Message, signal?: AbortSignal): Promise<PushAnswer | undefined> {
    if (checkEndpointUrl(url, this.env) !== undefined) return { status: null, fault: 'address-not-allowed' };
    const target = new URL(url);
    const agents = this.agents[mayBePrivate(target.hostname, this.env) ? 'private' : 'public'];
    const options: RequestOptions = {
      ...urlToHttpOptions(target),
      agent: target.protocol === 'https:' ? agents.httpsAgent : agents.httpAgent,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(message.body),
        'user-agent': 'notebridge',
        ...headersOf(message, secrets, this.clock.now()),
      },
    };
    const bounds = { connectMs: CONNECT_TIMEOUT_MS, totalMs: PUSH_TIMEOUT_MS, signal };
    try {
      const answer = await sendWithin(this.clock, 'push', bounds, (connection, stop) =>
        this.send(connection, { ...options, signal: stop }, message.body),
      );
      return {
        ...answer,
        retryAfterMs: retryAfterMs(answer.retryAfter, this.clock.now()),
        fault: faultOf(answer.status),
      };
    } catch (error) {
      return signal?.aborted ? undefined : { status: null, fault: faultOfError(error) };
    }
  }

  /** Sends a request. On a reused connection that the server had closed, it is sent once more. */
  private async send(connection: ConnectionWatch, options: RequestOptions, body: string): Promise<Answer> {
    try {
      return await this.attempt(connection, options, body);
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error;
      return this.attempt(connection, options, body);
    }
  }

  private attempt(connection: ConnectionWatch, options: RequestOptions, body: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request: ClientRequest = connection.request(options, (response) => {
        const answer = { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] };
        this.discard(response, () => resolve(answer));
      });
      request.once('error', (error) => {
        const isStale = request.reusedSocket && /^(ECONNRESET|EPIPE)$/.test(codeOf(error));
        reject(isStale ? new StaleConnection('', { cause: error }) : error);
      });
      request.end(body);
    });
  }

  /** Reads the rest of an answer. Its status counts, even if it is cut off. */
  private discard(response: IncomingMessage, done: () => void): void {
    const forget = this.clock.after(REST_TIMEOUT_MS, () => response.destroy());
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) response.destroy();
    });
    response.on('error', done).on('close', () => {
      forget();
      done();
    });
  }
}

interface Answer {
  status: number;
  retryAfter: string | undefined;
}

/** A server closes unused connections at any time, also while a request is on its way to it. */
class StaleConnection extends Error {}

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
