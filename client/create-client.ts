import openApiFetch from 'openapi-fetch';
import type { Methods } from './methods.js';
import { IDEMPOTENT_POSTS } from './schema.js';
import { checkAddress, checkHeaderValue, checkPath, checkUpload } from './sending/checks.js';
import { DEFAULT_ATTEMPTS, isRepeatable } from './sending/retry-rule.js';
import { send, type UploadBody } from './sending/send.js';
import { callOptions, type Upload } from './sending/upload.js';
import { type EventsOptions, type FeedEvent, readEvents } from './waiting/events.js';
import type { Waited } from './waiting/rest-of-work.js';
import { type WaitOptions, waitFor } from './waiting/wait-for.js';

/** The service, the caller, and how requests are sent. */
export interface ClientOptions {
  /** Address of the service, such as `https://notebridge.example`, also with a path. */
  url: string;
  /** API key. A browser that has signed in needs none. */
  key?: string | undefined;
  /** The EHR's id of the user on whose behalf it calls; the audit log keeps it. */
  onBehalfOf?: string | undefined;
  /**
   * Why, as a code or the id of a ticket; the audit log keeps it. The accounting of disclosures understands the codes of
   * HL7 v3 PurposeOfUse, such as `TREAT`.
   */
  purpose?: string | undefined;
  /** How often a request that may be repeated is sent. Defaults to 6, which takes about 15 seconds. */
  attempts?: number | undefined;
  /**
   * How long one attempt without a file may take: until the end of its answer, or the beginning of a streamed one. Defaults
   * to 90 000, as `Prefer: wait` takes up to 60 seconds; `events` and `waitFor` never use less. Infinite for a `fetch` that
   * waits for a person.
   */
  answerTimeoutMs?: number | undefined;
  /** Defaults to the `fetch` of the platform. */
  fetch?: typeof globalThis.fetch | undefined;
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
  signal?: AbortSignal | null;
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
    // The URL of the standard, because a base with spaces around it would break the path.
    baseUrl: new URL(url).href,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(onBehalfOf !== undefined && { 'notebridge-on-behalf-of': onBehalfOf }),
      ...(purpose !== undefined && { 'notebridge-purpose': purpose }),
    },
  });
  const request = api.request as Call;
  return async (method, path, { signal, parseAs = 'json', ...options } = {}, upload) => {
    checkPath(path, options.params);
    const sendings = isRepeatable(method, path, IDEMPOTENT_POSTS) ? attempts : 1;
    const sendBuilt = (built: Request) => {
      if (method === 'POST' && sendings > 1 && !built.headers.has(IDEMPOTENCY_KEY))
        built.headers.set(IDEMPOTENCY_KEY, newIdempotencyKey());
      return send(built, {
        fetch: fetch ?? ((input, init) => globalThis.fetch(input, init)),
        attempts: sendings,
        answerTimeoutMs,
        signal: signal ?? undefined,
        upload,
        isStreamed: parseAs === 'stream',
        isJson: parseAs === 'json',
      });
    };
    const { data, response } = await request(method, path, { ...options, parseAs, fetch: sendBuilt });
    return { data, response };
  };
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
 * Makes a client. It sends a request again if it may be repeated (every GET, PUT and DELETE, and each POST that takes an
 * `Idempotency-Key`), and the answer is 408, 429, 500, 502, 503 or 504, or there is none. It does so with increasing
 * backoff, and after `Retry-After`. The client makes that key, once for each call, unless the caller passes the header. A
 * DELETE whose answer was lost is done if its repetition is answered 404: then its `data` is undefined.
 *
 * @throws {TypeError} that names the option if `url` is not a complete http or https address without credentials, or if a
 *   header cannot contain `key`, `onBehalfOf` or `purpose`
 */
export function createClient(options: ClientOptions): Client {
  checkAddress(options.url);
  for (const name of ['key', 'onBehalfOf', 'purpose'] as const) checkHeaderValue(name, options[name]);
  const { attempts = DEFAULT_ATTEMPTS, answerTimeoutMs = ANSWER_TIMEOUT_MS } = options;
  const call = callerOf(options, attempts);
  // Their requests wait for 50 seconds.
  const polling = { ...options, answerTimeoutMs: Math.max(answerTimeoutMs, ANSWER_TIMEOUT_MS) };
  const polls = methodsOf(callerOf(polling, attempts));
  const endless = methodsOf(callerOf(polling, Number.POSITIVE_INFINITY));
  return {
    ...methodsOf(call),
    upload: (async (path: string, body, more = {}) => {
      checkUpload(body);
      return call('POST', path, callOptions(more), body);
    }) as Upload,
    events: (more = {}) => readEvents(polls.GET, endless.GET, more),
    waitFor: (kind, id, more = {}) => waitFor(polls, kind, id, more),
  };
}
