import { createHmac, timingSafeEqual } from 'node:crypto';

const HEX_DIGEST = /^[0-9a-f]{64}$/i;
/** Only digits: a colon could move bytes from the timestamp to the body without changing the signed message. */
const TIMESTAMP = /^\d+$/;

/**
 * Signs a webhook delivery as the platform does (spec, Signature verification).
 *
 * @param timestamp the header's value, unchanged
 * @param body the raw bytes of the request
 */
export function signWebhook(secret: string, timestamp: string, body: Buffer): string {
  return createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex');
}

/**
 * Finds the secret of a signature. Tries every secret, even after a match, and compares in constant time, so that the
 * duration shows nothing about secrets.
 *
 * @param signature in hex, of either case
 * @returns its index, or undefined
 */
export function matchingSecret(
  secrets: readonly string[],
  timestamp: string,
  body: Buffer,
  signature: string,
): number | undefined {
  const isWellFormed = HEX_DIGEST.test(signature) && TIMESTAMP.test(timestamp);
  const given = Buffer.from(isWellFormed ? signature : '0'.repeat(64), 'hex');
  const digestOf = (secret: string) => Buffer.from(signWebhook(secret, timestamp, body), 'hex');
  const matches = secrets.map((secret) => timingSafeEqual(digestOf(secret), given));
  const match = matches.indexOf(true);
  return isWellFormed && match !== -1 ? match : undefined;
}
