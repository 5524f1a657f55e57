import { HELD, HELD_MESSAGE } from '../../sending/hold-code.js';
import type { BreakerCode } from './circuit-breaker.js';

/** Reasons why an operator must decide. */
const REVIEWS = {
  'email-taken': 'Another person of the EHR has this email. Correct one of the two, or resolve this one with "ignore".',
  'create-unknown':
    'A create without an email got no answer, so the person may exist on the platform. Look there after a minute, then resolve with "link" or "create".',
  'restored-unknown':
    'The database was restored, and this client has no email. It may have been created after the backup, so look on the platform, then resolve with "link" or "create". Many are linked by an import with platformUserId.',
  'delete-unknown':
    'A create without an email may have reached the platform before the deletion. Look on the platform, then resolve with "link" (deletes the user) or "ignore".',
  'platform-user-taken':
    'People and platform users do not match: the user with this email is linked to another person, or the platform has a second user for a deleted person. See /v1/people/unknown-to-ehr, then resolve with one of the choices.',
  'platform-user-missing':
    'The platform no longer knows this user. Resolve with "create" to create it again, or with "link" to another user.',
  'role-mismatch':
    'The platform user with this email has another role, so it is a different person. Correct the email, or resolve with "link" to the right user.',
  'delete-linked':
    'This person was linked only by its email, so the platform user may be someone else. Look on the platform, then resolve with "delete", or with "ignore" to keep the user there.',
};
export type Review = keyof typeof REVIEWS;

/** Reasons why no call is made until the person is changed or resolved. */
const FAULTS = {
  rejected:
    'The platform rejected this person. Correct the data and PUT it again. The call is repeated for a day, unless it succeeds for other people.',
  forbidden: 'The platform answers 403 only for this person. Ask its support, then resolve with "retry".',
  ignored: 'An operator chose to ignore this person. PUT it again, or resolve with "retry", to continue.',
};
export type Fault = keyof typeof FAULTS;

/** The codes that last until an operator decides or the EHR writes. */
export const UNSETTLED_CODES = Object.keys({ ...REVIEWS, ...FAULTS }) as (Review | Fault)[];

/** Reasons why an operation is stopped for everyone, until a probe succeeds. */
const STOPS: Record<BreakerCode, string> = {
  'rate-limited': 'The platform asked for fewer calls. The call is retried automatically.',
  'platform-unauthorized':
    'The platform answers 401 or 403. Check PLATFORM_API_KEY; queued work resumes automatically once the key is valid.',
  'platform-address':
    'This URL is not the platform’s user-management API (404, 405, a redirect or HTML). Fix PLATFORM_BASE_URL or the paths in PLATFORM_CONTRACT; queued work then resumes automatically.',
  'platform-fault': 'The platform gave no readable answer. The call is retried automatically.',
  'platform-rejects':
    'The platform rejects this operation for everyone. See /health/ready for the status; queued work resumes automatically.',
};

/** The code of a deletion that a legal hold defers. */
export const LEGAL_HOLD = 'legal-hold';

/** The meaning and the remedy of each code, without personal data. */
export const PERSON_CODES: Record<string, string> = {
  ...REVIEWS,
  ...FAULTS,
  ...STOPS,
  'not-configured':
    'The contract file has no apiKey, so nothing is sent. Set apiKey.header in PLATFORM_CONTRACT and restart.',
  [HELD]: HELD_MESSAGE,
  [LEGAL_HOLD]:
    'A legal hold keeps everything about this client, here and on the platform. The deletion follows once an administrator releases the hold.',
  'provider-not-mirrored': 'A provider of this client is not on the platform yet. The client follows automatically.',
  'clients-still-listed':
    'The platform still lists this provider for clients whose lists are being changed. The deletion follows automatically.',
  'waits-in-import': 'An import will bring this person; its turn has not come yet. A PUT moves it ahead.',
  'outcome-unknown':
    'The platform did not answer a create. A later lookup by email shows whether it took effect, so that no duplicate is created.',
  'platform-unreachable': 'The platform cannot be reached. The call is retried automatically.',
  unreadable:
    'The data of this person cannot be decrypted, so nothing is sent. See vault in /health/ready; add the missing key to DATA_KEYS, or PUT the person again.',
};

/** The message for a code. @param cause the operation of the newest call, and why it failed */
export function messageFor(code: string, cause: string | null = null): string {
  const message = PERSON_CODES[code] ?? 'An unexpected state stops this person. See the trace.';
  return cause === null ? message : `${message} Cause: ${cause}.`;
}
