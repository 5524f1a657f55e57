import { WEBHOOK_SIGNATURE_HEADER, WEBHOOK_TIMESTAMP_HEADER } from '../../platform/contract/wire-types.js';
import { matchingSecret } from '../../platform/webhook-signature.js';
import { ageFault } from './age-window.js';

/** Why a request is not taken for a delivery of the platform; the words of the ledger. */
export const REFUSAL_CAUSES = [
  'content-encoding',
  'missing-signature',
  'missing-timestamp',
  'duplicate-header',
  'malformed-signature',
  'malformed-timestamp',
  'stale',
  'future',
  'wrong-signature',
] as const;
export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

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

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Lower-case hex, as the sender makes it (spec, Signature verification). */
const SIGNATURE = /^[0-9a-f]{64}$/;

/** 15 digits reach to the year 33658 and stay exact as a number. */
const TIMESTAMP = /^\d{1,15}$/;

/**
 * Judges a request at the receiver by its headers, before its body is there.
 *
 * @param headers as Node gives them: names in lower case, repeated ones joined by a comma
 * @returns the cause for refusing it, or undefined
 */
export function headerFault(headers: Headers): RefusalCause | undefined {
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
 * Judges a request at the receiver. Content-Type and User-Agent are not judged: they prove nothing.
 *
 * @param headers as Node gives them: names in lower case, repeated ones joined by a comma
 * @param body the raw bytes, never decoded
 * @param now milliseconds since the Unix epoch
 * @returns what the delivery says of itself, or the cause for refusing it
 */
export function verifyDelivery(
  headers: Headers,
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

function isRepeated(value: string | string[]): value is string[] {
  return Array.isArray(value) || value.includes(',');
}
