import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import axios from 'axios';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { retryUntilStored } from '../../database/retries.js';
import { Metrics } from '../../http/server/metrics.js';
import { annotate, inSpan, markFailed } from '../../tracing/trace.js';
import { Contract } from '../contract/contract.js';
import type { JsonValue } from '../contract/contract-schema.js';
import { factsOf, OPERATION_NAMES, type OperationName } from '../contract/operations.js';
import { PLATFORM_ERROR_KINDS, PlatformError } from '../contract/platform-errors.js';
import { resettableAgents, sendWithin } from './connections.js';
import { errorForAnswer, PlatformAnswer } from './platform-answer.js';
import { SpellingsRepository } from './spellings.repository.js';

/** What a caller may ask of any call. */
export interface CallOptions {
  /** Ends the call at shutdown: `unreachable` when nothing had left, else `unknown-outcome`. */
  signal?: AbortSignal;
  /** Milliseconds within which the request must begin to leave; 2 seconds unless said. */
  connectWithinMs?: number;
}

/** What a placeholder of the contract stands for in one call. */
type CallParameters = Readonly<Record<string, string | number>>;

/** One call of an operation. */
interface PlatformCall {
  operation: OperationName;
  parameters?: CallParameters;
  /** Where the spec shows one; otherwise the contract's own is sent. */
  body?: object;
}

const CONNECT_TIMEOUT_MS = 2_000;
const FREE_SOCKETS = 16;
/**
 * Milliseconds after which a connection that nothing uses is closed: servers close theirs after five seconds (Node) to
 * minutes, and a call that leaves just then has an unknown outcome. Node goes by a shorter time that the server announces
 * only beside a time of the agent's own.
 */
const FREE_MS = 4_000;

/** Seconds, up to the longest PLATFORM_TIMEOUT_SECONDS. */
const BUCKETS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** What a call comes to, as the metrics have it. */
const OUTCOMES = ['ok', 'unreadable', ...PLATFORM_ERROR_KINDS] as const;

/** Speaks HTTP with the platform: one call is one HTTP attempt, and nothing of axios leaves this file. */
@Injectable()
export class PlatformHttp implements OnApplicationShutdown {
  private readonly kept = resettableAgents({ keepAlive: true, maxFreeSockets: FREE_SOCKETS, timeout: FREE_MS });
  private readonly fresh = resettableAgents({ keepAlive: false });
  private readonly seconds: ReturnType<typeof Metrics.prototype.histogram<'operation' | 'outcome'>>;
  /** Beside the histogram, which would have a dozen series for each outcome that never came. */
  private readonly calls: ReturnType<typeof Metrics.prototype.counter<'operation' | 'outcome'>>;

  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly clock: Clock,
    private readonly spellings: SpellingsRepository,
    metrics: Metrics,
  ) {
    const labels = ['operation', 'outcome'] as const;
    this.seconds = metrics.histogram(
      'platform_call_seconds',
      'Time from a call of the platform to its answer, by what it came to',
      labels,
      BUCKETS,
    );
    this.calls = metrics.counter(
      'platform_calls_total',
      'Calls of the platform by what they came to',
      labels,
      OPERATION_NAMES.flatMap((operation) => OUTCOMES.map((outcome) => ({ operation, outcome }))),
    );
  }

  onApplicationShutdown(): void {
    for (const agent of [...Object.values(this.kept), ...Object.values(this.fresh)]) agent.destroy();
  }

  /**
   * Makes one HTTP attempt; it is never repeated here and redirects are never followed.
   *
   * @param read takes from a 2xx answer what the caller needs: one that it can't read counts as unreadable
   * @throws {PlatformError} for everything else
   */
  async call<T>(call: PlatformCall & CallOptions, read: (answer: PlatformAnswer) => T): Promise<T> {
    return inSpan(call.operation, { kind: 'CLIENT' }, () => this.measured(call, read));
  }

  private async measured<T>(call: PlatformCall & CallOptions, read: (answer: PlatformAnswer) => T): Promise<T> {
    const { operation } = call;
    const begun = this.clock.monotonicMs();
    const measure = (outcome: (typeof OUTCOMES)[number]) => {
      this.seconds.observe({ operation, outcome }, (this.clock.monotonicMs() - begun) / 1000);
      this.calls.inc({ operation, outcome });
    };
    try {
      const answer = await this.attempt(call);
      annotate({ 'http.response.status_code': answer.status });
      const result = read(answer);
      measure('ok');
      for (const id of answer.ids) await retryUntilStored(() => this.spellings.learnFromAnswer(id), this.clock);
      return result;
    } catch (error) {
      if (error instanceof PlatformError) {
        measure(error.isUnreadable ? 'unreadable' : error.kind);
        markFailed(error.kind);
        if (error.status !== undefined) annotate({ 'http.response.status_code': error.status });
      }
      throw error;
    }
  }

  private async attempt({
    signal,
    connectWithinMs = CONNECT_TIMEOUT_MS,
    ...call
  }: PlatformCall & CallOptions): Promise<PlatformAnswer> {
    const { operation } = call;
    const platform = { base: this.env.PLATFORM_BASE_URL, apiKey: this.env.PLATFORM_API_KEY };
    const started = this.clock.monotonicMs();
    const spelled = await this.spellings.restore(call).catch(() => undefined);
    const connectMs = connectWithinMs - (this.clock.monotonicMs() - started);
    if (!spelled || connectMs <= 0) throw new PlatformError('unreachable', operation, { reason: 'database' });
    const request = platformRequest(this.contract, platform, spelled);
    const bounds = { connectMs, totalMs: this.env.PLATFORM_TIMEOUT_SECONDS * 1_000, signal };
    const { status, headers, data } = await sendWithin(this.clock, operation, bounds, (transport, stop) =>
      axios.request<Buffer>({
        ...request,
        headers: { 'user-agent': 'notebridge', 'content-type': false, ...request.headers },
        responseType: 'arraybuffer',
        transformRequest: [],
        transformResponse: [],
        validateStatus: () => true,
        maxRedirects: 0,
        maxContentLength: factsOf(operation).answerLimit,
        proxy: false,
        signal: stop,
        transport,
        ...(factsOf(operation).creates ? this.fresh : this.kept),
      }),
    );
    const text = data.toString('utf8');
    const header = (name: string) => (typeof headers[name] === 'string' ? headers[name] : undefined);
    // An API answers no web page: another server does, or the platform's own at an address that it does not know.
    const isPage = isHtml(header('content-type'), text);
    if (status < 200 || status >= 300)
      throw errorForAnswer(operation, { status, retryAfter: header('retry-after'), text, isPage }, this.clock.now());
    if (!isPage) return new PlatformAnswer(operation, status, text, this.contract.operations[operation].response);
    const facts = { status, reason: 'a web page instead of an answer', isWrongAddress: true };
    throw new PlatformError('unknown-outcome', operation, facts);
  }
}

function isHtml(contentType = '', text: string): boolean {
  return /^text\/html\b/i.test(contentType) || /^<(?:!doctype html|html)\b/i.test(text.slice(0, 200).trimStart());
}

const PLACEHOLDER = /\{([A-Za-z]+)\}/g;
const ONLY_PLACEHOLDER = /^\{([A-Za-z]+)\}$/;
/** Would change the address instead of standing in it; a URL reads the encoded spellings alike. */
const NO_PATH_SEGMENT = /^\.{0,2}$/;

/**
 * Builds the request of one operation from what the spec shows and what the contract file adds. Pure.
 *
 * @param platform its address without a slash at the end, whose own path is kept
 * @throws {PlatformError} `not-configured` when the contract lacks a setting, `rejected` when a parameter can't stand in
 *   an address
 */
export function platformRequest(
  contract: Contract,
  platform: { base: string; apiKey: string },
  call: PlatformCall,
): { method: string; url: string; headers: Record<string, string>; data: string | undefined } {
  const { operation, parameters = {} } = call;
  const rule = contract.operations[operation];
  const missing = contract.missingFor(operation);
  if (!rule.method || !rule.path || missing.length > 0)
    throw new PlatformError('not-configured', operation, { missing });
  const path = fill(rule.path, parameters, (text, name) => {
    if (!NO_PATH_SEGMENT.test(text)) return encodeWellFormed(text);
    throw new PlatformError('rejected', operation, { reason: `${name} is empty or dots, nothing was sent` });
  });
  const query = Object.entries(rule.query)
    .map(([name, value]) => `${encodeWellFormed(name)}=${encodeWellFormed(fill(value, parameters, String))}`)
    .join('&');
  const body = call.body ?? (rule.body === undefined ? undefined : fillBody(rule.body, parameters));
  return {
    method: rule.method,
    url: `${platform.base}${path}${query && `?${query}`}`,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...fillHeaders(rule.headers, parameters),
      ...credentials(contract, operation, platform.apiKey),
    },
    data: body === undefined ? undefined : JSON.stringify(body),
  };
}

/** Fills the placeholders of contract headers, with lower-case names; what a header can't hold is percent-encoded. */
export function fillHeaders(headers: Record<string, string>, parameters: CallParameters): Record<string, string> {
  const filled = Object.entries(headers).map(([name, value]) => [
    name.toLowerCase(),
    fill(value, parameters, (text) => text.replace(/[^\x20-\x7e]+/gu, encodeWellFormed)),
  ]);
  return Object.fromEntries(filled);
}

function credentials(contract: Contract, operation: OperationName, apiKey: string): Record<string, string> {
  if (factsOf(operation).bearerAlways) return { authorization: `Bearer ${apiKey}` };
  if (!contract.apiKey) return {};
  const { header, scheme } = contract.apiKey;
  return { [header.toLowerCase()]: scheme ? `${scheme} ${apiKey}` : apiKey };
}

/** A value that is nothing but `{size}` becomes a number, as JSON writes sizes. */
function fillBody(value: JsonValue, parameters: CallParameters): JsonValue {
  if (typeof value === 'string') {
    return parameters[ONLY_PLACEHOLDER.exec(value)?.[1] ?? ''] ?? fill(value, parameters, String);
  }
  if (Array.isArray(value)) return value.map((item) => fillBody(item, parameters));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillBody(item, parameters)]));
}

function fill(template: string, parameters: CallParameters, encode: (text: string, name: string) => string): string {
  return template.replace(PLACEHOLDER, (whole, name: string) => {
    const value = parameters[name];
    return value === undefined ? whole : encode(String(value), name);
  });
}

/** Half a surrogate pair has no UTF-8 form and would make the encoder throw. */
function encodeWellFormed(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD'));
}
