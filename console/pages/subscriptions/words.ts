import type { Schemas } from '../../api/client.js';

type Answer = Schemas['PushAnswerResponse'];

/** Why attempts fail. */
const FAULTS: Record<NonNullable<Answer['fault']>, string> = {
  'address-not-allowed': 'its address is not allowed',
  'error-status': 'it answered with an error',
  'no-answer': 'the connection ended without an answer',
  'no-connection': 'no connection',
  redirect: 'it redirected, and redirects are not followed',
  timeout: 'no answer within 15 seconds',
  tls: 'its certificate is not trusted',
};

/** What an endpoint answered: `Accepted (204)`, or `Failed: it answered with an error (500)`. */
export function answerInWords({ status, fault }: Pick<Answer, 'status' | 'fault'>): string {
  if (fault === null) return `Accepted (${status})`;
  return `Failed: ${FAULTS[fault]}${status === null ? '' : ` (${status})`}`;
}

/** Why nothing is pushed. */
export const PAUSE_REASONS: Record<NonNullable<Schemas['SubscriptionResponse']['pausedReason']>, string> = {
  requested: 'Paused by a user.',
  'endpoint-gone': 'The endpoint answered 410.',
  'no-success': 'No attempt succeeded for five days.',
  'cursor-expired': 'Undelivered events were deleted by retention.',
};
