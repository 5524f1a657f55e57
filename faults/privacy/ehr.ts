import { setTimeout as delay } from 'node:timers/promises';
import { signWebhook } from '../../src/webhooks/receive/webhook-signature.js';

/** Pause before a retry. */
const RETRY_MS = 500;

/** Problems of a busy machine: the database or the platform did not answer within its timeout, which is short here. */
const NO_TIME = /problem:(database-unavailable|platform-(unclear|unreachable)|upload-failed)/;

/** An answer of the service. */
interface Answered {
  readonly status: number;
  readonly text: string;
}

interface AskOptions {
  /** A text, bytes or a form is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
}

/** Acts as the EHR, and as the platform that signs webhooks. Stores all errors, and answers that must not name a person. */
export class PrivateEhr {
  /** Answers with a 4xx or 5xx status. */
  readonly refusals: string[] = [];
  /** Number of answers by status. */
  readonly seen = new Map<number, number>();

  constructor(
    readonly url: string,
    private readonly adminKey: string,
    private readonly webhookSecret: string,
  ) {}

  async ask(
    method: string,
    path: string,
    { body, type, headers, key = this.adminKey }: AskOptions = {},
  ): Promise<Answered> {
    const isRaw = typeof body === 'string' || body instanceof Uint8Array || body instanceof FormData;
    const contentType = type ?? (body === undefined || isRaw ? undefined : 'application/json');
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(contentType && { 'content-type': contentType }), ...headers },
      ...(body !== undefined && { body: isRaw ? (body as string) : JSON.stringify(body) }),
    });
    const text = await response.text();
    this.seen.set(response.status, (this.seen.get(response.status) ?? 0) + 1);
    if (response.status >= 400) this.refusals.push(text);
    return { status: response.status, text };
  }

  /** Sends a request that must succeed. @returns the JSON of the answer */
  async get<Body = { id: string }>(method: string, path: string, options?: AskOptions): Promise<Body> {
    const { status, text } = await this.ask(method, path, options);
    if (status > 500 && NO_TIME.test(text)) {
      await delay(RETRY_MS);
      return this.get<Body>(method, path, options);
    }
    if (status >= 300) throw new Error(`${method} ${path} returned ${status}: ${text}`);
    return JSON.parse(text) as Body;
  }

  /** Sends a webhook. @param signature by default, the platform's valid one */
  webhook(body: string, signature?: string): Promise<Answered> {
    const timestamp = String(Date.now());
    return this.ask('POST', '/webhooks/platform', {
      body,
      type: 'application/json',
      headers: {
        'x-service-timestamp': timestamp,
        'x-service-signature': signature ?? signWebhook(this.webhookSecret, timestamp, Buffer.from(body)),
      },
    });
  }
}
