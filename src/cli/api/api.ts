import type { Page } from '../../http/request/page.js';
import { answeredFault, CliFault, sentenceOf, Unreachable } from './cli-fault.js';
import type { Connection } from './connection.js';

interface RequestOptions {
  /** How many seconds the service may wait for the work to be settled before it answers; at most 60 (Prefer: wait). */
  wait?: number;
  signal?: AbortSignal;
  /** The requested media type; JSON by default. */
  accept?: string;
  /** Another status, besides 2xx, whose answer is returned. */
  also?: number;
}

/** The service's HTTP API. Every method throws {@link CliFault} with the service's message if the answer is an error. */
export class Api {
  private connection: Connection | undefined;

  private hasAnswered = false;

  /**
   * @param connect called once, before the first request, so that help needs no key
   * @param onFirstAnswer called once, with the URL of the service
   */
  constructor(
    private readonly connect: () => Connection,
    private readonly onFirstAnswer: (url: string) => void = () => {},
  ) {}

  async get<T>(path: string, options?: RequestOptions): Promise<T> {
    return (await (await this.send('GET', path, undefined, options)).json()) as T;
  }

  /** @param body as in `send` */
  async post<T>(path: string, body: object = {}, options?: RequestOptions): Promise<T> {
    const text = await (await this.send('POST', path, body, options)).text();
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** All items of a list, page by page. @param path without a query */
  async *all<T>(path: string, query: Record<string, string | undefined> = {}): AsyncGenerator<T> {
    let cursor: string | null = null;
    do {
      const page: Page<T> = await this.get(withQuery(path, { limit: '200', ...query, cursor: cursor ?? undefined }));
      yield* page.items;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  /** @param body a form, or a blob with its media type, is streamed; anything else becomes JSON */
  async send(
    method: string,
    path: string,
    body?: object,
    { wait, signal, accept, also }: RequestOptions = {},
  ): Promise<Response> {
    this.connection ??= this.connect();
    const { url, key, onBehalfOf } = this.connection;
    const isRaw = body === undefined || body instanceof FormData || body instanceof Blob;
    const headers = {
      authorization: `Bearer ${key}`,
      ...(onBehalfOf !== undefined && { 'notebridge-on-behalf-of': onBehalfOf }),
      ...(wait !== undefined && { prefer: `wait=${wait}` }),
      ...(accept && { accept }),
      ...(!isRaw && { 'content-type': 'application/json' }),
    };
    const request = { method, headers, body: isRaw ? body : JSON.stringify(body), signal, redirect: 'error' } as const;
    const answer = await fetch(url + path, request).catch((error: unknown) => {
      if (signal?.aborted) throw error;
      throw new Unreachable(
        `notebridge does not answer at ${url} (${causeOf(error)}). Is it running, and is NOTEBRIDGE_URL correct?`,
      );
    });
    if (answer.headers.has('request-id') && !this.hasAnswered) this.onFirstAnswer(url);
    this.hasAnswered = true;
    if (answer.ok || answer.status === also) {
      // Every answer of notebridge has an id. The console answers unknown paths with its page.
      const isPage = answer.headers.get('content-type')?.startsWith('text/html');
      if (answer.headers.has('request-id') && !isPage) return answer;
      throw new CliFault(`The program at ${url} is not notebridge's API. Is NOTEBRIDGE_URL correct?`);
    }
    const text = await answer.text();
    const Fault = answer.status >= 502 && answer.status <= 504 ? Unreachable : CliFault;
    throw new Fault(sentenceOf(answer.status, text), 1, answeredFault(answer.status, text));
  }
}

/** A path with a query, without the parameters that are undefined. */
export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
}

/** Why fetch failed: the code of the error, such as ECONNREFUSED, or its message. */
export function causeOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown };
  const { code, message } = cause as { code?: unknown; message?: string };
  return typeof code === 'string' ? code : message || 'no reason given';
}
