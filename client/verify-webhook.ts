import { NotebridgeError } from './notebridge-error.js';
import type { FeedEvent } from './waiting/events.js';

/** A pushed event, whose signature is verified. */
export interface WebhookEvent {
  type: FeedEvent['type'];
  /** When the event happened, in ISO 8601. */
  timestamp: string;
  /** The members of this type of event, in addition to those of every event. */
  data: { cursor: string; subject: string; [name: string]: unknown };
}

/** Headers as a `Headers`, pairs, or an object such as Node's `request.headers`; names in any case. */
export type WebhookHeaders =
  | Headers
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** Maximum seconds between the timestamp and `now`, in both directions. Defaults to 300. */
  toleranceSeconds?: number | undefined;
  /** Defaults to the clock of this machine. */
  now?: Date | undefined;
}

const SECRET_PREFIX = /^whsec_/;
const SIGNATURE_PREFIX = 'v1,';

/**
 * Verifies a push by the specification Standard Webhooks (https://www.standardwebhooks.com).
 *
 * @param headers of the request: `webhook-id`, `webhook-timestamp` and `webhook-signature`
 * @param body exactly as it arrived
 * @param secrets `whsec_…` of the subscription, also without that prefix; several while it is being exchanged
 * @returns the event. Its `webhook-id` stays the same when it is sent again.
 * @throws {NotebridgeError} with the status 0: `missing-header`, `old-timestamp`, `future-timestamp`, `bad-signature`,
 *   `bad-body` if the body was parsed before, or is signed but is not JSON, `bad-secret` if the secret is missing or not base64
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: string | ArrayBuffer | ArrayBufferView,
  secrets: string | readonly string[],
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const header = readerOf(headers);
  const [id, timestamp, signatures] = [header('webhook-id'), header('webhook-timestamp'), header('webhook-signature')];
  checkTimestamp(timestamp, toleranceSeconds, now);
  const bytes = rawOf(body);
  const signed = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const keys = await Promise.all([secrets].flat().map((secret) => keyOf(secret)));
  if (keys.length === 0) throw badSecret();
  const given = signatures
    .split(' ')
    .filter((each) => each.startsWith(SIGNATURE_PREFIX))
    .flatMap((each) => bytesOf(each.slice(SIGNATURE_PREFIX.length)) ?? []);
  for (const key of keys) {
    for (const signature of given) {
      // Compares in constant time.
      if (await crypto.subtle.verify('HMAC', key, signature, signed)) return eventOf(bytes);
    }
  }
  throw refusal(
    'bad-signature',
    'No signature fits the body and the secrets. Check the secret; pass the body unchanged.',
  );
}

function refusal(type: string, detail: string): NotebridgeError {
  return new NotebridgeError(type, 0, detail);
}

function badSecret(): NotebridgeError {
  return refusal('bad-secret', 'The secret must be whsec_ and base64, as POST /v1/subscriptions gave it.');
}

/** @throws {NotebridgeError} `bad-body` for what a JSON parser has made of the body */
function rawOf(body: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw refusal('bad-body', 'The body is no text and no bytes. Pass it as it arrived, for example by express.raw().');
}

/** Reads single headers. @throws {NotebridgeError} `missing-header` */
function readerOf(headers: WebhookHeaders): (name: string) => string {
  const given = headers ?? {};
  const entries = Symbol.iterator in given ? [...given] : Object.entries(given);
  const values = new Map(entries.map(([name, value]) => [name.toLowerCase(), [value].flat().join(' ')]));
  return (name) => {
    const value = values.get(name);
    if (!value) throw refusal('missing-header', `The header ${name} is missing.`);
    return value;
  };
}

function checkTimestamp(timestamp: string, toleranceSeconds: number, now: Date): void {
  const seconds = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
  const age = now.getTime() / 1_000 - seconds;
  if (age <= toleranceSeconds && age >= -toleranceSeconds) return;
  const type = age < 0 ? 'future-timestamp' : 'old-timestamp';
  throw refusal(type, `The webhook-timestamp is not within ${toleranceSeconds} seconds of the clock of this machine.`);
}

/** @throws {NotebridgeError} `bad-secret` */
async function keyOf(secret: string) {
  // A missing setting is undefined, although its type excludes that.
  const text: unknown = secret;
  const raw = typeof text === 'string' ? bytesOf(text.replace(SECRET_PREFIX, '')) : undefined;
  if (!raw?.length) throw badSecret();
  return crypto.subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
}

/** Decodes base64; undefined for other text. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function concat(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}

/** @throws {NotebridgeError} `bad-body` */
function eventOf(bytes: Uint8Array): WebhookEvent {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent;
  } catch {
    throw refusal('bad-body', 'The body is signed but is not JSON.');
  }
}
