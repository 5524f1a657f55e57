import { WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from '../../platform/contract/wire-types.js';
import { matchingSecret } from '../../platform/webhook-signature.js';

/** Why a request is not taken for a delivery of the platform, as the ledger of rejections shows it. */
export type RefusalCause =
  | 'content-encoding'
  | 'missing-signature'
  | 'missing-timestamp'
  | 'duplicate-header'
  | 'malformed-signature'
  | 'malformed-timestamp'
  | 'stale'
  | 'future'
  | 'wrong-signature';

/** What a genuine delivery says of itself. */
export interface GenuineDelivery {
  signature: string;
  /** Milliseconds since the Unix epoch, as the header spells them. */
  timestamp: string;
  /** Which secret of the rotation had signed it. */
  secretIndex: number;
}

/** Secrets to try, and how old a delivery may be (undefined: any age). */
export interface DeliveryRules {
  secrets: readonly string[];
  maxAgeSeconds: number | undefined;
}

/** As Node gives them: names in lower case, repeated ones joined by a comma. */
export type DeliveryHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** Lower-case hex, as the sender makes it (spec, Signature verification). */
const SIGNATURE = /^[0-9a-f]{64}$/;

/** 15 digits reach to the year 33658 and stay exact as a number. */
const TIMESTAMP = /^\d{1,15}$/;

/** Milliseconds that the sender's clock may be ahead of ours. */
const FUTURE_SKEW_MS = 5 * 60_000;

/** The cause for refusing a request by its headers, before its body is read. */
export function headerFault(headers: DeliveryHeaders): RefusalCause | undefined {
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && String(encoding).toLowerCase() !== 'identity') return 'content-encoding';
  const signature = headers[WEBHOOK_SIGNATURE_HEADER];
  const timestamp = headers[WEBHOOK_TIMESTAMP_HEADER];
  if (signature === undefined || signature === '') return 'missing-signature';
  if (timestamp === undefined || timestamp === '') return 'missing-timestamp';
  if (isRepeated(signature) || isRepeated(timestamp)) return 'duplicate-header';
  if (!SIGNATURE.test(signature)) return 'malformed-signature';
  return TIMESTAMP.test(timestamp) ? undefined : 'malformed-timestamp';
}

/**
 * Verifies a request at the receiver. Content-Type and User-Agent are not looked at: they prove nothing.
 *
 * @param body the raw bytes, never decoded
 * @param now milliseconds since the Unix epoch
 * @returns what the delivery says of itself, or the cause for refusing it
 */
export function verifyDelivery(
  headers: DeliveryHeaders,
  body: Buffer,
  rules: DeliveryRules,
  now: number,
): GenuineDelivery | RefusalCause {
  const fault = headerFault(headers);
  if (fault !== undefined) return fault;
  const signature = String(headers[WEBHOOK_SIGNATURE_HEADER]);
  const timestamp = String(headers[WEBHOOK_TIMESTAMP_HEADER]);
  const secretIndex = matchingSecret(rules.secrets, timestamp, body, signature);
  if (secretIndex === undefined) return 'wrong-signature';
  return ageFault(Number(timestamp), now, rules.maxAgeSeconds) ?? { signature, timestamp, secretIndex };
}

/** Judges the age of a delivery; a repeat inside the window is recognised by its signature. */
export function ageFault(sentAt: number, now: number, maxAgeSeconds?: number): 'stale' | 'future' | undefined {
  if (maxAgeSeconds === undefined) return undefined;
  if (now - sentAt > maxAgeSeconds * 1000) return 'stale';
  return sentAt - now > FUTURE_SKEW_MS ? 'future' : undefined;
}

function isRepeated(value: string | string[]): value is string[] {
  return Array.isArray(value) || value.includes(',');
}
