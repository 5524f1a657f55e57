import { Injectable, Logger } from '@nestjs/common';
import { Clock } from '../../config/clock.js';
import { Env } from '../../config/env.js';
import { Metrics } from '../../monitoring/metrics.js';
import { Sending } from '../../sending/sending.js';
import { Contract } from '../contract/contract.js';
import { factsOf, OPERATION_NAMES, type OperationName } from '../contract/operations.js';
import { PLATFORM_ERROR_KINDS, PlatformError } from '../contract/platform-errors.js';
import { type Ways, waysOf } from './connections.js';
import { exchange, type PlatformRequest } from './exchange.js';
import type { PlatformAnswer } from './platform-answer.js';
import { UnreadableAnswers } from './unreadable-answers.repository.js';

/** Options of a call. */
export interface CallOptions {
  /** Ends the call at shutdown, as `unreachable` if nothing was sent, otherwise as `unknown-outcome`. */
  signal?: AbortSignal;
}

/** The values of the contract's placeholders. */
type CallParameters = Readonly<Record<string, string | number>>;

interface PlatformCall extends CallOptions {
  operation: OperationName;
  parameters?: CallParameters;
  /** If the spec shows one; otherwise the contract's body is sent. */
  body?: object;
}

/** Maximum time to connect, with the questions before it. */
export const CONNECT_TIMEOUT_MS = 2_000;

/** Seconds, up to the maximum of PLATFORM_TIMEOUT_SECONDS. */
const BUCKETS = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** The outcomes of calls in the metrics. */
const OUTCOMES = ['ok', 'unreadable', ...PLATFORM_ERROR_KINDS] as const;

/**
 * Makes the HTTP calls to the platform. Each call is one attempt over a new connection, because the outcome of a call over
 * a kept one is unknown if the platform closes it at that moment.
 */
@Injectable()
export class PlatformHttp {
  private readonly log = new Logger(PlatformHttp.name);
  private readonly ways: Ways;
  private readonly seconds: ReturnType<typeof Metrics.prototype.histogram<'operation' | 'outcome'>>;
  /** Not a part of the histogram, which would have a dozen series for each outcome that never occurred. */
  private readonly calls: ReturnType<typeof Metrics.prototype.counter<'operation' | 'outcome'>>;

  constructor(
    private readonly env: Env,
    private readonly contract: Contract,
    private readonly clock: Clock,
    private readonly unreadable: UnreadableAnswers,
    private readonly sending: Sending,
    metrics: Metrics,
  ) {
    this.ways = waysOf(env);
    const labels = ['operation', 'outcome'] as const;
    this.seconds = metrics.histogram('platform_call_seconds', 'Duration of platform calls by outcome', labels, BUCKETS);
    this.calls = metrics.counter(
      'platform_calls_total',
      'Platform calls by outcome',
      labels,
      OPERATION_NAMES.flatMap((operation) => OUTCOMES.map((outcome) => ({ operation, outcome }))),
    );
  }

  /** Makes one HTTP attempt. @param read reads a 2xx answer @throws {PlatformError} if there is no readable 2xx answer */
  async call<T>(call: PlatformCall, read: (answer: PlatformAnswer) => T): Promise<T> {
    const { operation } = call;
    const begun = this.clock.monotonicMs();
    const measure = (outcome: (typeof OUTCOMES)[number]) => {
      this.seconds.observe({ operation, outcome }, (this.clock.monotonicMs() - begun) / 1000);
      this.calls.inc({ operation, outcome });
    };
    try {
      const answer = await this.attempt(call);
      const result = read(answer);
      measure('ok');
      await this.unreadable.answered(operation).catch(() => undefined);
      return result;
    } catch (error) {
      if (error instanceof PlatformError) measure(error.isUnreadable ? 'unreadable' : error.kind);
      if (error instanceof PlatformError && error.isUnreadable) {
        this.log.warn({ msg: error.message, operation });
        await this.unreadable.note(operation, error.reason ?? 'no reason').catch(() => undefined);
      }
      throw error;
    }
  }

  private async attempt(call: PlatformCall): Promise<PlatformAnswer> {
    const { env, contract, clock, ways } = this;
    const { operation, signal } = call;
    const started = clock.monotonicMs();
    const isAllowed = factsOf(operation).reads || (await this.sending.isAllowed().catch(() => undefined));
    const connectMs = CONNECT_TIMEOUT_MS - (clock.monotonicMs() - started);
    if (isAllowed === undefined || connectMs <= 0)
      throw new PlatformError('unreachable', operation, { reason: 'database' });
    if (!isAllowed) throw new PlatformError('held', operation);
    const request = platformRequest(contract, env, call);
    return exchange(operation, request, { env, contract, clock, ways, connectMs, signal });
  }
}

const PLACEHOLDER = /\{([A-Za-z]+)\}/g;
const ONLY_PLACEHOLDER = /^\{([A-Za-z]+)\}$/;
/** Values that would change the path instead of being a segment of it, encoded or not. */
const NO_PATH_SEGMENT = /^\.{0,2}$/;

/** Builds the request of a call. @throws {PlatformError} `not-configured`, or `rejected` if a URL cannot hold a parameter */
export function platformRequest(
  contract: Contract,
  env: Pick<Env, 'PLATFORM_BASE_URL' | 'PLATFORM_API_KEY'>,
  call: PlatformCall,
): PlatformRequest {
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
  const fillMember = (_name: string, value: unknown) =>
    typeof value === 'string' ? fillText(value, parameters) : value;
  const data = call.body ? JSON.stringify(call.body) : JSON.stringify(rule.body, fillMember);
  return {
    method: rule.method,
    url: `${env.PLATFORM_BASE_URL}${path}${query && `?${query}`}`,
    headers: {
      accept: 'application/json',
      ...(data !== undefined && { 'content-type': 'application/json' }),
      ...fillHeaders(rule.headers, parameters),
      ...credentials(contract, operation, env.PLATFORM_API_KEY),
    },
    data,
  };
}

/** Fills headers, whose names become lower case; null removes one. Percent-encodes characters that headers cannot contain. */
export function fillHeaders(headers: Record<string, string | null>, parameters: CallParameters) {
  const filled: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    delete filled[name.toLowerCase()];
    if (value === null) continue;
    filled[name.toLowerCase()] = fill(value, parameters, (text) => text.replace(/[^\x20-\x7e]+/gu, encodeWellFormed));
  }
  return filled;
}

function credentials(contract: Contract, operation: OperationName, apiKey: string): Record<string, string> {
  if (factsOf(operation).bearerAlways) return { authorization: `Bearer ${apiKey}` };
  if (!contract.apiKey) return {};
  const { header, scheme } = contract.apiKey;
  return { [header.toLowerCase()]: scheme ? `${scheme} ${apiKey}` : apiKey };
}

/** Fills a text of a body. One that consists of `{size}` becomes a number. */
function fillText(text: string, parameters: CallParameters): string | number {
  return parameters[ONLY_PLACEHOLDER.exec(text)?.[1] ?? ''] ?? fill(text, parameters, String);
}

function fill(template: string, parameters: CallParameters, encode: (text: string, name: string) => string): string {
  return template.replace(PLACEHOLDER, (whole, name: string) => {
    const value = parameters[name];
    return value === undefined ? whole : encode(String(value), name);
  });
}

/** Replaces half surrogate pairs, for which the encoder would throw. */
function encodeWellFormed(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD'));
}
