const PASS_ON = 'Let every proxy on the way pass on x-service-signature, x-service-timestamp and the body unchanged.';

const dropped = (header: string) =>
  ({
    code: 'webhook-headers',
    fault: `The header ${header} is missing: a proxy between the platform and this service probably drops it.`,
    action: PASS_ON,
  }) as const;

const altered = (fault: string) =>
  ({ code: 'webhook-headers', fault: `${fault}: a proxy probably changes it.`, action: PASS_ON }) as const;

/**
 * Why the receiver of webhooks refuses a request: the code of health, the fault, and the action to take. The answer and
 * health show these words. `{seconds}` is filled in.
 */
export const REFUSALS = {
  stale: {
    code: 'webhook-clock',
    fault: 'The signature is right, but its timestamp is {seconds} seconds older than WEBHOOK_MAX_AGE_SECONDS allows.',
    action:
      'Correct the clock of this service. If it is right, remove WEBHOOK_MAX_AGE_SECONDS and restart, because a retry may keep its first timestamp.',
  },
  future: {
    code: 'webhook-clock',
    fault: 'The signature is right, but its timestamp is {seconds} seconds ahead of the clock of this service.',
    action: 'Correct the clock of this service. Without WEBHOOK_MAX_AGE_SECONDS, timestamps are not judged.',
  },
  'wrong-signature': {
    code: 'webhook-secret',
    fault: 'The signature fits none of the secrets in PLATFORM_WEBHOOK_SECRET.',
    action: `Add the secret with which the platform signs to PLATFORM_WEBHOOK_SECRET, and restart. If it is there, a proxy changes the request. ${PASS_ON}`,
  },
  'missing-signature': dropped('x-service-signature'),
  'missing-timestamp': dropped('x-service-timestamp'),
  'duplicate-header': altered('The header x-service-signature or x-service-timestamp has more than one value'),
  'malformed-signature': altered('The header x-service-signature is not 64 hexadecimal digits'),
  'malformed-timestamp': altered('The header x-service-timestamp is not a time in milliseconds'),
  'content-encoding': altered('Content-Encoding says that the body is compressed'),
  'body-too-large': {
    code: 'webhook-size',
    fault: 'The body exceeds WEBHOOK_BODY_LIMIT.',
    action: 'If the platform sends such bodies, raise WEBHOOK_BODY_LIMIT, and restart.',
  },
  'wrong-path': {
    code: 'webhook-address',
    fault: 'A POST below /webhooks or with x-service-signature has another path than /webhooks/platform.',
    action: 'Register /webhooks/platform with the platform, and let every proxy keep this path.',
  },
  'wrong-method': {
    code: 'webhook-address',
    fault: 'A request to /webhooks/platform has another method than POST.',
    action:
      'Register the final https address with the platform, because a redirect may turn POST into GET. Let monitors ask /health/live.',
  },
} as const satisfies Record<string, { code: string; fault: string; action: string }>;

export type RefusalCause = keyof typeof REFUSALS;

/** Why a request is refused. `seconds`: how far the clocks differ too much, for `stale` and `future`. */
export interface Refusal {
  cause: RefusalCause;
  seconds?: number;
}

/** The fault and the action of a refusal. */
export function refusalText({ cause, seconds = 0 }: Refusal): { fault: string; action: string } {
  const { fault, action } = REFUSALS[cause];
  return { fault: fault.replace('{seconds}', String(seconds)), action };
}
