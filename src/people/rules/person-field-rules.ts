import { isEmail } from 'class-validator';
import { PROFILE_FIELDS as LABELS, type ProfileField } from '../../words/field-words.js';
import { type CodeOf, codesOf } from '../../words/words.js';
import type { PersonKind } from './person.js';

/** Maximum characters of an external id. */
export const EXTERNAL_ID_MAX = 200;

/** Maximum characters of a first or last name. */
const NAME_MAX = 200;

/** Maximum characters of an email. RFC 5321 §4.5.3.1.3: a path has at most 256 octets, including its brackets. */
const EMAIL_MAX = 254;

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

/** An email address that a mail server could accept, also with accents (RFC 6531). The platform may be stricter. */
export function isEmailAddress(value: unknown): value is string {
  if (typeof value !== 'string' || FORBIDDEN.test(value)) return false;
  return isEmail(value, { require_tld: false, allow_underscores: true, blacklisted_chars: '"' });
}

interface FieldRule {
  /** The kinds of people who need the field. */
  requiredFor: readonly PersonKind[];
  /** Maximum characters. */
  max: number;
  isValid: (value: unknown) => boolean;
  /** Follows the name of the field in an error of the API. */
  message: string;
  /** The code of a row of an import whose value is not valid. */
  rowCode: CodeOf<'rowCode'>;
}

const PERSON_NAME: FieldRule = {
  requiredFor: ['provider', 'client'],
  max: NAME_MAX,
  isValid: isPersonName,
  message: `must be a name of 1 to ${NAME_MAX} characters`,
  rowCode: 'bad-character',
};

/** The rules of the fields of a profile (spec, User management: who needs which). */
export const PROFILE_RULES: Record<ProfileField, FieldRule> = {
  email: {
    requiredFor: ['provider'],
    max: EMAIL_MAX,
    isValid: isEmailAddress,
    message: 'must be an email address such as name@example.org',
    rowCode: 'bad-email',
  },
  firstName: PERSON_NAME,
  lastName: PERSON_NAME,
};

export const PROFILE_FIELDS = codesOf(LABELS);

/** The EHR's data of a person: personal data, always sealed when stored. A field without a value is absent. */
export type Profile = { [Field in ProfileField]?: string };

/** The trimmed fields of a profile in a body, or in a row of an import. */
export function profileOf(source: { [Field in ProfileField]?: string | null | undefined }): Profile {
  const texts = PROFILE_FIELDS.map((field) => [field, source[field]?.trim()] as const);
  return Object.fromEntries(texts.filter(([, text]) => text));
}

/** The first field that a person of this kind needs and does not have. */
export function missingField(kind: PersonKind, profile: Profile): ProfileField | undefined {
  return PROFILE_FIELDS.find((field) => !profile[field] && PROFILE_RULES[field].requiredFor.includes(kind));
}
