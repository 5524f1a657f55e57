/** Maximum characters of an external id. */
export const EXTERNAL_ID_MAX = 200;

/** Maximum characters of a first or last name. */
export const NAME_MAX = 200;

/** Maximum characters of an email. RFC 5321 §4.5.3.1.3: a path has at most 256 octets, including its brackets. */
export const EMAIL_MAX = 254;

/** Maximum providers of a client. */
export const PROVIDERS_MAX = 100;

/** Control characters, and lone surrogates, which PostgreSQL cannot store. */
const FORBIDDEN = /[\p{Cc}\p{Cs}]/u;

/** An external id: not empty, no forbidden characters, no spaces at its ends. */
export function isExternalId(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= EXTERNAL_ID_MAX &&
    value.trim() === value &&
    !FORBIDDEN.test(value)
  );
}

/** A name: not only spaces, no forbidden characters. */
export function isPersonName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= NAME_MAX && !FORBIDDEN.test(value);
}

/**
 * An email address that a mail server could accept: a local part, one @ and a domain, without spaces. Accents
 * (RFC 6531), apostrophes and plus signs are allowed. The platform may be stricter.
 */
export function isEmailAddress(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > EMAIL_MAX) return false;
  return (
    /^[^\s@"(),:;<>[\]\\]+@[^\s@"(),:;<>[\]\\.]+(\.[^\s@"(),:;<>[\]\\.]+)*$/u.test(value) &&
    !FORBIDDEN.test(value) &&
    !/^\.|\.\.|\.@/.test(value)
  );
}
