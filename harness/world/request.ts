/** One request of a test to the service. */
export interface CallOptions {
  /** Sent as JSON, unless it is a form or bytes. */
  readonly body?: unknown;
  /** Seconds of `Prefer: wait`; the world works while the caller waits. */
  readonly wait?: number;
  /** Defaults to the administrator's key. */
  readonly key?: string;
  readonly idempotencyKey?: string;
  readonly accept?: string;
  /** Additional headers, such as the content type of bytes. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The service's answer. */
export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed text; undefined unless the answer is JSON. */
  readonly body: Body;
}

/** Sends one request. */
export async function request<Body>(
  url: string,
  method: string,
  { body, wait, key, idempotencyKey, accept, headers }: CallOptions,
): Promise<Answer<Body>> {
  const isJson = body !== undefined && !(body instanceof FormData) && !ArrayBuffer.isView(body);
  const answer = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(isJson && { 'content-type': 'application/json' }),
      ...(wait !== undefined && { prefer: `wait=${wait}` }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      ...(accept !== undefined && { accept }),
      ...headers,
    },
    body: isJson ? JSON.stringify(body) : (body as RequestInit['body']),
  });
  const text = await answer.text();
  const answeredJson = /\bjson\b/.test(answer.headers.get('content-type') ?? '');
  return {
    status: answer.status,
    headers: answer.headers,
    text,
    body: (answeredJson ? JSON.parse(text) : undefined) as Body,
  };
}
