/** Why a human being must decide. */
const REVIEWS = {
  'email-taken': 'Another person of the EHR has this email; correct one of the two, or resolve this one with "ignore".',
  'create-unknown':
    'A create without an email got no answer, so it is not known whether the person exists; look on the platform after a minute, then resolve with "link" or "create".',
  'delete-unknown':
    'A create without an email got no answer before the deletion; look on the platform, then resolve with "link" (it is deleted) or "ignore".',
  'platform-user-taken':
    'The platform user with this email is linked to another person; resolve with "link" to the right user.',
  'platform-user-missing':
    'The platform no longer knows this user; resolve with "create" to make it again, or "link" to another.',
  'role-mismatch':
    'The platform user with this email has another role, so that it is somebody else; correct the email, or resolve with "link" to the right user.',
  'create-unanswered':
    'The platform gave no readable answer to any create of this person for hours, and did not make it; ask its support, then resolve with "retry".',
  'delete-linked':
    'This client was linked by its email alone, and the platform never said that the user is a client; look on the platform, then resolve with "delete", or with "ignore" to leave the user there.',
  'second-user':
    'The platform made a second user for this person, which /v1/people/unknown-to-ehr lists; delete one of the two there, then resolve with "retry", or with "link" to the other.',
};
export type Review = keyof typeof REVIEWS;

/** Why nothing more is tried until something is changed. */
const FAULTS = {
  rejected: 'The platform refused this person; correct the data and PUT it again.',
  forbidden: 'The platform answers 403 for this person alone; ask its support, then resolve with "retry".',
  ignored: 'An administrator left this person out; a new PUT or resolve with "retry" takes it up again.',
};
export type Fault = keyof typeof FAULTS;

/** Why an operation is stopped for everybody: 403s, answers of a wrong address, or no readable answers. */
const STOPS = {
  'platform-unauthorized':
    'The platform answers 403; check PLATFORM_API_KEY. Work is kept and goes on when the key is good.',
  'platform-address':
    'What answers is not the user management of the platform (404, 405, a redirect or a web page); check PLATFORM_BASE_URL and the paths in PLATFORM_CONTRACT. Work is kept and goes on when the address is right.',
  'platform-fault': 'The platform did not give a readable answer; it is tried again by itself.',
};
export type StopCode = keyof typeof STOPS;

/** What each code means and what to do about it: one sentence, no personal data. */
export const PERSON_CODES: Record<string, string> = {
  ...REVIEWS,
  ...FAULTS,
  ...STOPS,
  'not-configured':
    'The contract file has no apiKey, so nothing is sent; set apiKey.header in PLATFORM_CONTRACT and restart.',
  'provider-not-mirrored':
    'A provider of this client is not on the platform yet; the client follows by itself once it is.',
  'clients-still-listed':
    'The platform still lists this provider for clients whose lists are being changed; the deletion follows.',
  'outcome-unknown':
    'The platform did not answer a create; it is looked up by email after a while, so that nobody is made twice.',
  'platform-unreachable': 'The platform can not be reached; it is tried again by itself.',
  unreadable:
    'The data of this person does not open, so nothing is sent; see vault in /health/ready: add the missing key to DATA_KEYS, or PUT the person again.',
  'rate-limited': 'The platform asked to slow down; it is tried again by itself.',
};

/**
 * The message for a code.
 *
 * @param platformText the platform's own words, for the caller that may see the person anyway; never for a log
 */
export function messageFor(code: string, platformText?: string): string {
  const message = PERSON_CODES[code] ?? 'Something unforeseen holds this person up; see the trace.';
  return platformText ? `${message} The platform said: ${platformText}` : message;
}
