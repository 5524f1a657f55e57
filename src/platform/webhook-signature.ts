import { createHmac, timingSafeEqual } from 'node:crypto';

const HEX_DIGEST = /^[0-9a-f]{64}$/;
/** A colon in it would let bytes wander between timestamp and body without changing the signed message. */
const TIMESTAMP = /^\d+$/;

/**
 * Signature of a webhook delivery as the platform makes it (spec, Signature verification).
 *
 * @param timestamp the header value as text, never parsed and printed again
 * @param body the raw bytes of the request, never JSON that was serialised again
 */
export function signWebhook(secret: string, timestamp: string, body: Buffer): string {
  return createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex');
}

/**
 * Index of the secret that made this signature, or undefined when none did. Every secret is tried, also after a match,
 * and each comparison takes constant time, so that the answer's timing shows nothing about secrets.
 */
export function matchingSecret(
  secrets: readonly string[],
  timestamp: string,
  body: Buffer,
  signature: string,
): number | undefined {
  const isWellFormed = HEX_DIGEST.test(signature) && TIMESTAMP.test(timestamp);
  const given = Buffer.from(isWellFormed ? signature : '0'.repeat(64));
  const matches = secrets.map((secret) => timingSafeEqual(Buffer.from(signWebhook(secret, timestamp, body)), given));
  const match = matches.indexOf(true);
  return isWellFormed && match !== -1 ? match : undefined;
}
