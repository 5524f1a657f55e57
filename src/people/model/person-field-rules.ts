/** An external id has at most this many characters. */
export const EXTERNAL_ID_MAX = 200;

/** A first or last name has at most this many characters. */
export const NAME_MAX = 200;

/** RFC 5321 §4.5.3.1.3: a path holds 256 octets with its brackets. */
export const EMAIL_MAX = 254;

/** A client's list holds at most this many providers. */
export const PROVIDERS_MAX = 100;

/** Control characters, and halves of characters, which no database keeps. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

/** An external id: some characters, none of them a control character or half of one, no blank at either end. */
export function isExternalId(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length > 0 &&
    value.length <= EXTERNAL_ID_MAX &&
    value.trim() === value &&
    !UNFIT.test(value)
  );
}

/** A name: something other than blanks, no control characters, no half of a character. */
export function isPersonName(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= NAME_MAX && !UNFIT.test(value);
}

/**
 * An email address that a mail server could know: one @, something before it, a domain behind it, no blanks. Accents
 * (RFC 6531), apostrophes and plus signs are allowed; the platform may refuse more.
 */
export function isEmailAddress(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > EMAIL_MAX) return false;
  return (
    /^[^\s@"(),:;<>[\]\\]+@[^\s@"(),:;<>[\]\\.]+(\.[^\s@"(),:;<>[\]\\.]+)*$/u.test(value) &&
    !UNFIT.test(value) &&
    !/^\.|\.\.|\.@/.test(value)
  );
}
