import type { IncomingHttpHeaders } from 'node:http';
import { WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from '../../platform/contract/wire-types.js';
import type { Refusal, RefusalCause } from '../../words/refusal-words.js';
import { matchingSecret } from './webhook-signature.js';

/** A genuine delivery. */
export interface VerifiedDelivery {
  /** Lower-case hex, over timestamp and body: an exact repeat has the same one. */
  signature: string;
  /** The raw bytes. */
  body: Buffer;
  /** The timestamp header: milliseconds since the Unix epoch. */
  sentAt: string;
  secretIndex: number;
}

const SIGNATURE = /^[0-9a-f]{64}$/i;

/** 15 digits reach to the year 33658 and stay exact as a number. */
const TIMESTAMP = /^\d{1,15}$/;

/** Maximum lead of the sender's clock over this service's, in milliseconds. */
const FUTURE_SKEW_MS = 5 * 60_000;

/**
 * Verifies a request.
 *
 * @param body the raw bytes, never decoded
 * @returns the delivery, or why it is refused
 */
export function verifyDelivery(
  headers: IncomingHttpHeaders,
  body: Buffer,
  { secrets, maxAgeSeconds }: { secrets: readonly string[]; maxAgeSeconds: number | undefined },
  now: number,
): VerifiedDelivery | Refusal {
  const signature = String(headers[WEBHOOK_SIGNATURE_HEADER] ?? '');
  const sentAt = String(headers[WEBHOOK_TIMESTAMP_HEADER] ?? '');
  const cause = headerFault(headers['content-encoding'], signature, sentAt);
  if (cause) return { cause };
  const secretIndex = matchingSecret(secrets, sentAt, body, signature);
  if (secretIndex === undefined) return { cause: 'wrong-signature' };
  const ageMs = now - Number(sentAt);
  const tooOldMs = maxAgeSeconds === undefined ? 0 : ageMs - maxAgeSeconds * 1_000;
  if (tooOldMs > 0) return { cause: 'stale', seconds: Math.ceil(tooOldMs / 1_000) };
  if (maxAgeSeconds !== undefined && -ageMs > FUTURE_SKEW_MS)
    return { cause: 'future', seconds: Math.ceil(-ageMs / 1_000) };
  return { signature: signature.toLowerCase(), body, sentAt, secretIndex };
}

/** The time of a timestamp header in milliseconds since the Unix epoch, at most the last one with a year of four digits. */
export const shownTime = (sentAt: bigint | number): Date => new Date(Math.min(Number(sentAt), Date.UTC(9999, 11, 31)));

/** Content-Type and User-Agent prove nothing. */
function headerFault(encoding: string | undefined, signature: string, timestamp: string): RefusalCause | undefined {
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return 'content-encoding';
  if (signature === '') return 'missing-signature';
  if (timestamp === '') return 'missing-timestamp';
  if (signature.includes(',') || timestamp.includes(',')) return 'duplicate-header'; // Node joins them by a comma
  if (!SIGNATURE.test(signature)) return 'malformed-signature';
  return TIMESTAMP.test(timestamp) ? undefined : 'malformed-timestamp';
}
