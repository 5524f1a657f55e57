import type { IncomingHttpHeaders } from 'node:http';
import { WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from '../../platform/contract/wire-types.js';
import { matchingSecret } from '../../platform/webhook-signature.js';

/** Why a request is not a genuine delivery, as the ledger of rejections shows it. */
export type RejectionCause = NonNullable<ReturnType<typeof headerFault>> | 'wrong-signature' | 'stale' | 'future';

/** Lower-case hex, as the platform sends it (spec, Signature verification). */
const SIGNATURE = /^[0-9a-f]{64}$/;

/** 15 digits reach to the year 33658 and stay exact as a number. */
const TIMESTAMP = /^\d{1,15}$/;

/** Maximum lead of the sender's clock over this service's, in milliseconds. */
const FUTURE_SKEW_MS = 5 * 60_000;

/** Why the headers prove that a request is not genuine. Content-Type and User-Agent prove nothing. */
export function headerFault(headers: IncomingHttpHeaders) {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return 'content-encoding';
  const signature = String(headers[WEBHOOK_SIGNATURE_HEADER] ?? '');
  const timestamp = String(headers[WEBHOOK_TIMESTAMP_HEADER] ?? '');
  if (signature === '') return 'missing-signature';
  if (timestamp === '') return 'missing-timestamp';
  if (signature.includes(',') || timestamp.includes(',')) return 'duplicate-header'; // Node joins them by a comma
  if (!SIGNATURE.test(signature)) return 'malformed-signature';
  return TIMESTAMP.test(timestamp) ? undefined : 'malformed-timestamp';
}

/** A genuine delivery. */
export interface VerifiedDelivery {
  /** In lower-case hex, over timestamp and body: an exact repeat has the same one. */
  signature: string;
  /** The raw bytes. */
  body: Buffer;
  /** Milliseconds since the Unix epoch. */
  sentAt: string;
  /** Of the secret that signed it. */
  secretIndex: number;
}

/**
 * Verifies a request whose headers have no fault.
 *
 * @param body the raw bytes, never decoded
 * @returns the delivery, or why it is not genuine
 */
export function verifyDelivery(
  headers: IncomingHttpHeaders,
  body: Buffer,
  { secrets, maxAgeSeconds }: { secrets: readonly string[]; maxAgeSeconds: number | undefined },
  now: number,
): VerifiedDelivery | RejectionCause {
  const signature = String(headers[WEBHOOK_SIGNATURE_HEADER]);
  const sentAt = String(headers[WEBHOOK_TIMESTAMP_HEADER]);
  const secretIndex = matchingSecret(secrets, sentAt, body, signature);
  if (secretIndex === undefined) return 'wrong-signature';
  const ageMs = now - Number(sentAt);
  if (maxAgeSeconds !== undefined && ageMs > maxAgeSeconds * 1_000) return 'stale';
  if (maxAgeSeconds !== undefined && -ageMs > FUTURE_SKEW_MS) return 'future';
  return { signature, body, sentAt, secretIndex };
}
