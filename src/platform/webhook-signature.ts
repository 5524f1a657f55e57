import { createHmac, timingSafeEqual } from 'node:crypto';

const HEX_DIGEST = /^[0-9a-f]{64}$/;
/** A colon in it would let bytes wander between timestamp and body without changing the signed message. */
const TIMESTAMP = /^\d+$/;

/**
 * Signature of a webhook delivery as the platform makes it (spec, Signature verification): HMAC-SHA-256, in lower-case
 * hex, over `v0:` + timestamp + `:` + body.
 *
 * @param timestamp the header value as text, never parsed and printed again
 * @param body the raw bytes of the request, never JSON that was serialised again
 */
export function signWebhook(secret: string, timestamp: string, body: Buffer): string {
  return digest(secret, timestamp, body).toString('hex');
}

/**
 * Index of the secret that made this signature, or undefined when none did. Every secret is tried, also after a match,
 * and each comparison takes constant time, so that the answer's timing shows nothing about secrets.
 *
 * @param timestamp the header value; only digits are accepted
 * @param signature the header value; only exactly 64 lower-case hex digits are accepted
 */
export function matchingSecret(
  secrets: readonly string[],
  timestamp: string,
  body: Buffer,
  signature: string,
): number | undefined {
  const isDigest = HEX_DIGEST.test(signature);
  const wellFormed = isDigest && TIMESTAMP.test(timestamp);
  const given = isDigest ? Buffer.from(signature, 'hex') : Buffer.alloc(32);
  let match: number | undefined;
  for (const [index, secret] of secrets.entries()) {
    const same = timingSafeEqual(digest(secret, timestamp, body), given);
    if (same && wellFormed && match === undefined) match = index;
  }
  return match;
}

function digest(secret: string, timestamp: string, body: Buffer): Buffer {
  return createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest();
}
