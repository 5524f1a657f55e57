import { VisibleTo } from '../../access/guard/visible-to.js';
import { PageResponse } from '../../http/request/page.js';
import { HELD } from '../../sending/hold-code.js';
import { openIfReadable } from '../../vault/unreadable-value.js';
import type { ProfileField } from '../../words/field-words.js';
import { isReading } from '../rules/next-step.js';
import type { Operation, Origin, PersonKind, PersonState } from '../rules/person.js';
import { LEGAL_HOLD, messageFor } from '../rules/person-codes.js';
import { PROFILE_FIELDS, type Profile } from '../rules/person-field-rules.js';
import type { ProfileSeal } from '../rules/profile.js';
import type { PersonRow } from '../store/person-row.js';

export class SyncErrorResponse {
  /** @example email-taken */
  code!: string;
  message!: string;
  /** The message of the platform; null if there is none */
  @VisibleTo('notes:read')
  platformMessage!: string | null;
}

export class SyncResponse {
  state!: PersonState;
  /** The next call to the platform */
  step!: string | null;
  error!: SyncErrorResponse | null;
  /** Changed fields of the profile that no operation of the platform can update */
  notPushable!: ProfileField[];
  updatedAt!: Date;
}

/** The audit log has who set the hold, and why. */
export class LegalHoldResponse {
  since!: Date;
}

/** A person as the EHR sees it. */
export class PersonResponse {
  externalId!: string;
  kind!: PersonKind;
  /** Null if there is none, and once the deletion is requested */
  @VisibleTo('people:read')
  email!: string | null;
  /** Empty once the deletion is requested; null if unreadable */
  @VisibleTo('people:read')
  firstName!: string | null;
  /** Empty once the deletion is requested; null if unreadable */
  @VisibleTo('people:read')
  lastName!: string | null;
  /** Clients only; the first is the primary */
  @VisibleTo('people:read')
  providers?: string[];
  @VisibleTo('people:read')
  platformUserId!: string | null;
  /**
   * How the platform user became known: created here, found by its email, named by an event, or linked manually; null
   * without one
   */
  @VisibleTo('people:read')
  origin!: Origin | null;
  /** Grants access to the platform as this person */
  @VisibleTo('people:read', 'invites:read')
  inviteUrl!: string | null;
  /** Clients only; null without a legal hold, which keeps everything about the client until its release */
  legalHold?: LegalHoldResponse | null;
  sync!: SyncResponse;
  /** Fields that are null because their stored values cannot be decrypted; absent if none */
  unreadable?: string[];
}

export class PersonPageResponse extends PageResponse {
  items!: PersonResponse[];
}

/** The name of a person; null if unreadable. */
export class PersonNameResponse {
  kind!: PersonKind;
  externalId!: string;
  firstName!: string | null;
  lastName!: string | null;
}

export class NamesResponse {
  items!: PersonNameResponse[];
}

/** A platform user that the EHR does not know. */
export class UnknownPlatformUserResponse {
  platformUserId!: string;
  role!: string;
  externalUserId!: string | null;
  seenAt!: Date;
}

export class PlatformUserPersonResponse {
  kind!: PersonKind;
  externalId!: string;
}

/** A platform user, as far as this service knows it. */
export class PlatformUserResponse {
  platformUserId!: string;
  /** Client, HealthcareProvider or OrgAdmin; null if neither an event nor a call showed it */
  role!: string | null;
  /** The external id in the event that named it; null if none */
  externalUserId!: string | null;
  /** When it was first named or deleted; null if it never was, or has had only one person since */
  seenAt!: Date | null;
  /** True if it was deleted through this service */
  deleted!: boolean;
  /** The person that it is linked to */
  person!: PlatformUserPersonResponse | null;
  /** The person whose user it was until it was deleted */
  formerPerson!: PlatformUserPersonResponse | null;
}

export class UnknownPlatformUserPageResponse extends PageResponse {
  items!: UnknownPlatformUserResponse[];
}

/** The profile of a person whose deletion was requested. */
const ERASED_PROFILE: Profile = { firstName: '', lastName: '' };

/** Conditions that stop all people: the contract does not define how to call the platform, or sending is held. */
interface Stops {
  isConfigured: boolean;
  isHeld: boolean;
}

/** Decrypts a person for the API. */
export function showPerson(row: PersonRow, seal: ProfileSeal, stops: Stops): PersonResponse {
  const { externalId, kind, wanted, platformUserId, state, step, updatedAt, heldAt } = row;
  const origin = platformUserId === null ? null : (row.origin as Origin);
  // A legal hold keeps the data of a deleted client, but only an export shows it.
  const inviteUrl = wanted ? row.inviteUrl : null;
  const profile = openIfReadable(() => (wanted && row.profile ? seal.open(row, row.profile) : ERASED_PROFILE));
  const applied = openIfReadable(() => row.appliedProfile && seal.open(row, row.appliedProfile));
  const invite = openIfReadable(() => inviteUrl && seal.openText(row, 'invite_url', inviteUrl));
  const unreadable = [profile ? [] : PROFILE_FIELDS, invite === undefined ? 'inviteUrl' : []].flat();
  const code = codeOf(row, stops);
  const { errorText } = row;
  const hasText = errorText && code === row.errorCode;
  const text = hasText ? openIfReadable(() => seal.openText(row, 'error_text', errorText)) : undefined;
  return {
    externalId,
    kind,
    ...shownProfile(profile),
    ...(kind === 'client' && { providers: row.providers, legalHold: heldAt && { since: heldAt } }),
    platformUserId,
    origin,
    inviteUrl: invite ?? null,
    sync: {
      state,
      step,
      error: code === null ? null : { code, message: messageFor(code, row.answerFault), platformMessage: text || null },
      notPushable: wanted ? notPushable(origin, profile, applied ?? null) : [],
      updatedAt,
    },
    ...(unreadable.length > 0 && { unreadable }),
  };
}

/** Why the person is in its state. */
function codeOf({ errorCode, state, step }: PersonRow, { isConfigured, isHeld }: Stops): string | null {
  const isOpen = state === 'pending' || state === 'deleting';
  if (errorCode === LEGAL_HOLD) return LEGAL_HOLD;
  if (isOpen && !isConfigured) return 'not-configured';
  if (isOpen && isHeld && step !== null && !isReading(step as Operation)) return HELD;
  return state === 'synced' || state === 'deleted' ? null : errorCode;
}

const shownProfile = (profile: Profile | undefined) =>
  Object.fromEntries(PROFILE_FIELDS.map((field) => [field, profile?.[field] ?? null])) as Record<
    ProfileField,
    string | null
  >;

/**
 * The fields that changed since the platform received them, because no operation of the platform can update them. For a
 * user that was found by its email, only the email is known.
 *
 * @param origin null without a platform user
 * @param wanted undefined if unreadable
 * @param given the profile with which the user was created or found; null if neither, or unreadable
 */
export function notPushable(origin: Origin | null, wanted: Profile | undefined, given: Profile | null): ProfileField[] {
  if (origin === null || !wanted || !given) return [];
  // A deletion may have reduced a profile that was sent before to its email.
  const isEmailOnly = origin === 'linked' || given.firstName === undefined;
  return PROFILE_FIELDS.filter((field) => wanted[field] !== given[field] && (field === 'email' || !isEmailOnly));
}
