import { type Fields, isChoice, objectOf, optionalChoice, optionalText } from '../body-fields.js';
import { invalid } from '../refusal.js';
import type { Settings } from '../settings.js';

export const FAULT_KINDS = [
  /** The connection is reset before the request is handled. */
  'refuse',
  /** Handled, then the connection is cut instead of an answer. */
  'commit-then-cut',
  /** Handled, then answered with 500. */
  'commit-then-500',
  /** The connection is cut immediately, and the request handled `ms` later. */
  'commit-late',
  /** Handled, then answered 200 with truncated JSON. */
  'bad-json',
  /** Handled, answered `ms` later. */
  'slow',
  /** Answered with `status`, not handled. */
  'status',
  /** Answered 429 with `retryAfter` and `retryAfterSeconds`, not handled. */
  'rate-limit',
  /** Answered 403, not handled. */
  'forbid',
  /** Answered 200 with `body`, not handled. */
  'answer',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** A rule that injects faults. */
export interface FaultRule {
  /** An operation's name, or `*`. */
  operation: string;
  kind: FaultKind;
  /** The probability that a matching request gets the fault, 0 to 1. */
  probability: number;
  /** How many more requests get the fault; null: no limit. */
  count: number | null;
  /** Values that the request must have: path parameters, body fields, or partnerUserId and email of the user it names. */
  match: Record<string, string>;
  ms: number;
  status: number;
  /** Any JSON. */
  body: unknown;
  retryAfter: Settings['retryAfter'];
  retryAfterSeconds: number;
}

/** Reads one rule. @throws Refusal 400 that names the invalid field */
export function readFaultRule(value: unknown): FaultRule {
  const fields = objectOf(value, 'A fault rule');
  const kind = optionalChoice(fields, 'kind', FAULT_KINDS);
  if (!kind) throw invalid(`kind is required: one of ${FAULT_KINDS.join(', ')}.`);
  const match = objectOf(fields.match ?? {}, 'match');
  if (!Object.values(match).every((expected) => typeof expected === 'string')) {
    throw invalid('match must contain only strings.');
  }
  const retryAfter = fields.retryAfter ?? 'seconds';
  if (!isChoice(retryAfter, ['seconds', 'date', 'absent'] as const)) {
    throw invalid('retryAfter must be one of seconds, date, absent.');
  }
  return {
    operation: optionalText(fields, 'operation') ?? '*',
    kind,
    probability: amount(fields, 'probability', 1),
    count: fields.count === undefined || fields.count === null ? null : amount(fields, 'count', 0),
    match: match as Record<string, string>,
    ms: amount(fields, 'ms', 0),
    status: amount(fields, 'status', 500),
    body: fields.body ?? {},
    retryAfter,
    retryAfterSeconds: amount(fields, 'retryAfterSeconds', 1),
  };
}

function amount(fields: Fields, name: string, otherwise: number): number {
  const value = fields[name] ?? otherwise;
  if (typeof value !== 'number' || !(value >= 0)) throw invalid(`${name} must be a number of at least 0.`);
  return value;
}
