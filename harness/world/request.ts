/** A request of a test to the service. */
export interface CallOptions {
  readonly body?: unknown;
  /** Seconds that the call may wait (Prefer: wait); the world works meanwhile. */
  readonly wait?: number;
  /** Otherwise the administrator's. */
  readonly key?: string;
  readonly idempotencyKey?: string;
  readonly accept?: string;
}

/** What the service answered. */
export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The text as JSON; undefined where it is none. */
  readonly body: Body;
}

/** Sends one request. */
export async function request<Body>(
  url: string,
  method: string,
  { body, wait, key, idempotencyKey, accept }: CallOptions,
): Promise<Answer<Body>> {
  const answer = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(wait !== undefined && { prefer: `wait=${wait}` }),
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
      ...(accept !== undefined && { accept }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  const isJson = /\bjson\b/.test(answer.headers.get('content-type') ?? '');
  return {
    status: answer.status,
    headers: answer.headers,
    text,
    body: (isJson ? JSON.parse(text) : undefined) as Body,
  };
}
