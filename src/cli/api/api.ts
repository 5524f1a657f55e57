import { CliFault, sentenceOf, Unreachable } from './cli-fault.js';
import type { Connection } from './connection.js';

/** How a request is sent. */
export interface RequestOptions {
  /** Seconds for which the service may keep the answer back until the work is settled; 60 at most (Prefer: wait). */
  wait?: number;
  signal?: AbortSignal;
  /** The media type that is wanted; JSON by default. */
  accept?: string;
}

/** A page of a list. */
export interface Page<T> {
  items: T[];
  nextCursor: string | null;
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The service's HTTP API. Every method throws {@link CliFault} with the service's own words for an error answer. */
export class Api {
  private known: Connection | undefined;

  /** @param connect asked once, at the first request, so that help needs no key */
  constructor(private readonly connect: () => Connection) {}

  /** Where the service is and the key for it. @throws {CliFault} when no key is to be found */
  get connection(): Connection {
    this.known ??= this.connect();
    return this.known;
  }

  async get<T>(path: string, options?: RequestOptions): Promise<T> {
    return this.json('GET', path, undefined, options);
  }

  async post<T>(path: string, body: unknown = {}, options?: RequestOptions): Promise<T> {
    return this.json('POST', path, body, options);
  }

  async put<T>(path: string, body: unknown, options?: RequestOptions): Promise<T> {
    return this.json('PUT', path, body, options);
  }

  /** Deletes; undefined where the service answers without a body. */
  async delete<T>(path: string, options?: RequestOptions): Promise<T> {
    return this.json('DELETE', path, undefined, options);
  }

  /** Sends a form with files, which are read from disk as they are sent. */
  async upload<T>(path: string, form: FormData, options?: RequestOptions): Promise<T> {
    return (await (await this.send('POST', path, { body: form }, options)).json()) as T;
  }

  /** Sends bytes as they are. @param mediaType of the bytes */
  async uploadBytes<T>(
    path: string,
    bytes: Uint8Array<ArrayBuffer>,
    mediaType: string,
    options?: RequestOptions,
  ): Promise<T> {
    const content = { body: bytes, headers: { 'content-type': mediaType } };
    return (await (await this.send('POST', path, content, options)).json()) as T;
  }

  /** The answer as text. */
  async text(path: string, options?: RequestOptions): Promise<string> {
    return (await this.send('GET', path, {}, options)).text();
  }

  /** The answer's bytes as they come. */
  async stream(path: string, options?: RequestOptions): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.send('GET', path, {}, options);
    if (!body) throw new CliFault('The service answered without a body.');
    return body;
  }

  /** All items of a list, page by page. @param path without a query */
  async *all<T>(path: string, query: Record<string, string | undefined> = {}): AsyncGenerator<T> {
    let cursor: string | null = null;
    do {
      const page: Page<T> = await this.get(withQuery(path, { ...query, limit: '200', cursor: cursor ?? undefined }));
      yield* page.items;
      cursor = page.nextCursor;
    } while (cursor !== null);
  }

  private async json<T>(method: Method, path: string, body: unknown, options?: RequestOptions): Promise<T> {
    const content =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    const answer = await this.send(method, path, content, options);
    const text = await answer.text();
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  private async send(
    method: Method,
    path: string,
    content: { body?: string | FormData | Uint8Array<ArrayBuffer>; headers?: Record<string, string> },
    { wait, signal, accept }: RequestOptions = {},
  ): Promise<Response> {
    const { url, key } = this.connection;
    const headers = {
      authorization: `Bearer ${key}`,
      ...(accept && { accept }),
      ...(wait !== undefined && { prefer: `wait=${wait}` }),
      ...content.headers,
    };
    let answer: Response;
    try {
      answer = await fetch(url + path, { method, ...content, headers, signal, redirect: 'error' });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable(
        `notebridge does not answer at ${url} (${causeOf(error)}): is it running, and is NOTEBRIDGE_URL right?`,
      );
    }
    if (answer.ok) return answer;
    const sentence = sentenceOf(answer.status, await answer.text());
    throw answer.status >= 502 && answer.status <= 504 ? new Unreachable(sentence) : new CliFault(sentence);
  }
}

/** A path with a query; what is undefined is left out. */
export function withQuery(path: string, query: Record<string, string | undefined>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path;
}

/** One segment of a path: an id of the EHR may hold anything. */
export function segment(id: string): string {
  return encodeURIComponent(id);
}

/** What went wrong below fetch, by its code where it has one, such as ECONNREFUSED. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : undefined;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return 'no reason given';
}
