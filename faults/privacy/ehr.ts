import { setTimeout as delay } from 'node:timers/promises';
import { signWebhook } from '../../src/platform/webhook-signature.js';

/** Milliseconds after which a request is sent again for which a stalled machine had no time, as a caller should. */
const AGAIN_MS = 500;

/** The database had no time, or the platform's answer did not come in its time, which is short here. */
const NO_TIME = /problem:(database-unavailable|platform-(unclear|unreachable)|upload-failed)/;

/** What the service answered. */
interface Said {
  readonly status: number;
  readonly text: string;
}

interface AskOptions {
  /** Sent as JSON, or as it is when it is a text, bytes or a form. */
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
}

/** An EHR, and a platform that signs its webhooks; keeps every refusal, and answers that nobody may find a person in. */
export class PrivateEhr {
  /** Answers of 4xx and 5xx. */
  readonly refusals: string[] = [];
  /** How many answers had a status. */
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
  ): Promise<Said> {
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

  /** The JSON of an answer that must be a success. */
  async get<Body = { id: string }>(method: string, path: string, options?: AskOptions): Promise<Body> {
    const { status, text } = await this.ask(method, path, options);
    if (status > 500 && NO_TIME.test(text)) {
      await delay(AGAIN_MS);
      return this.get<Body>(method, path, options);
    }
    if (status >= 300) throw new Error(`${method} ${path} was answered ${status}: ${text}`);
    return JSON.parse(text) as Body;
  }

  /** A webhook as the platform signs it, unless told otherwise. */
  webhook(body: string, signature?: string): Promise<Said> {
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
