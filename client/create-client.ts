import openApiFetch from 'openapi-fetch';
import { type EventsOptions, type FeedEvent, readEvents } from './events.js';
import type { Methods } from './methods.js';
import type { Waited } from './rest-of-work.js';
import { IDEMPOTENT_POSTS } from './schema.js';
import { DEFAULT_ATTEMPTS, isRepeatable } from './sending/retry-rule.js';
import { send, type UploadBody } from './sending/send.js';
import { callOptions, type Upload } from './sending/upload.js';
import { type WaitOptions, waitFor } from './wait-for.js';

/** The service, the caller, and how requests are sent. */
export interface ClientOptions {
  /** Address of the service, such as `https://notebridge.example`. */
  url: string;
  /** API key. A browser that has signed in needs none. */
  key?: string | undefined;
  /** The EHR's id of the user on whose behalf it calls; the audit log keeps it. */
  onBehalfOf?: string | undefined;
  /** The EHR's code of the reason for the calls; the audit log keeps it. */
  purpose?: string | undefined;
  /** How often a request that may be repeated is sent. Defaults to 6, which takes about 15 seconds. */
  attempts?: number;
  /**
   * How long a request without a file may wait for the beginning of its answer. Defaults to 90 000, as `Prefer: wait` takes
   * up to 60 seconds. Infinite for a `fetch` that waits for a person.
   */
  answerTimeoutMs?: number;
  /** Defaults to the `fetch` of the platform. */
  fetch?: typeof globalThis.fetch;
}

/** The API of one service for one caller. */
export interface Client extends Methods {
  upload: Upload;
  /** Follows the feed: see `readEvents`. */
  events(options?: EventsOptions): AsyncGenerator<FeedEvent, void, undefined>;
  /** Waits until work is settled: see `waitFor`. */
  waitFor<Kind extends keyof Waited>(kind: Kind, id: string, options?: WaitOptions<Kind>): Promise<Waited[Kind]>;
}

const ANSWER_TIMEOUT_MS = 90_000;
const IDEMPOTENCY_KEY = 'idempotency-key';

/** Options of one call, as openapi-fetch takes them. */
interface CallOptions {
  signal?: AbortSignal;
  parseAs?: string;
  [name: string]: unknown;
}

type Call = (
  method: string,
  path: string,
  options?: CallOptions,
  upload?: UploadBody,
) => Promise<{ data?: unknown; response: Response }>;

/** Sends requests of any type. */
function callerOf(options: ClientOptions, attempts: number): Call {
  const { url, key, onBehalfOf, purpose, fetch, answerTimeoutMs = ANSWER_TIMEOUT_MS } = options;
  const api = openApiFetch<object>({
    baseUrl: url,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(onBehalfOf !== undefined && { 'notebridge-on-behalf-of': onBehalfOf }),
      ...(purpose !== undefined && { 'notebridge-purpose': purpose }),
    },
  });
  const request = api.request as Call;
  return async (method, path, { signal, parseAs = 'json', ...options } = {}, upload) => {
    const sendings = isRepeatable(method, path, IDEMPOTENT_POSTS) ? attempts : 1;
    const sendBuilt = (built: Request) => {
      if (method === 'POST' && sendings > 1 && !built.headers.has(IDEMPOTENCY_KEY))
        built.headers.set(IDEMPOTENCY_KEY, newIdempotencyKey());
      return send(built, {
        fetch: fetch ?? ((input, init) => globalThis.fetch(input, init)),
        attempts: sendings,
        answerTimeoutMs,
        signal,
        upload,
        isStreamed: parseAs === 'stream',
        isJson: parseAs === 'json',
      });
    };
    const { data, response } = await request(method, path, { ...options, parseAs, fetch: sendBuilt });
    return { data, response };
  };
}

/** False for `localhost:3000`, which is an address with the scheme `localhost:`. */
function isWebAddress(url: string): boolean {
  return URL.canParse(url) && ['http:', 'https:'].includes(new URL(url).protocol);
}

/** 128 random bits. `crypto.randomUUID` is missing in pages that a browser got by plain HTTP. */
function newIdempotencyKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** The typed calls, which differ only in their types. */
function methodsOf(call: Call): Methods {
  const method = (name: string) => (path: string, options?: CallOptions) => call(name, path, options);
  const [GET, PUT, POST, PATCH, DELETE] = ['GET', 'PUT', 'POST', 'PATCH', 'DELETE'].map(method);
  return { GET, PUT, POST, PATCH, DELETE } as unknown as Methods;
}

/**
 * Makes a client. A request without an answer, and one with 408, 429, 500, 502, 503 or 504, is sent again with increasing
 * backoff and after `Retry-After`, if it may be repeated: every GET, PUT and DELETE, and each POST that takes an
 * `Idempotency-Key`. The client makes that key, once for each call, unless the caller passes the header. A DELETE whose
 * answer was lost is done if its repetition is answered 404: then its `data` is undefined.
 *
 * @throws {TypeError} if `url` is not a complete http or https address, for example because a setting is missing
 */
export function createClient(options: ClientOptions): Client {
  if (!isWebAddress(options.url))
    throw new TypeError('createClient needs the address of notebridge as url, such as https://notebridge.example.');
  const call = callerOf(options, options.attempts ?? DEFAULT_ATTEMPTS);
  const methods = methodsOf(call);
  const patient = methodsOf(callerOf(options, Number.POSITIVE_INFINITY));
  return {
    ...methods,
    upload: ((path: string, body, more = {}) => call('POST', path, callOptions(more), body)) as Upload,
    events: (more = {}) => readEvents(patient.GET, more),
    waitFor: (kind, id, more = {}) => waitFor(methods, kind, id, more),
  };
}
