import type { PersonRow } from './person-row.js';
import type { Profile } from './profile.js';

/** A field of a person that the platform takes once, at its creation, and has no operation to change. */
export type FixedField = keyof Profile | 'primaryProvider';

/** How the platform's copy of a person compares with what is wanted now, as far as this service gave it. */
export interface PlatformCopy {
  /** Changed since the platform was given them. */
  notPushable: FixedField[];
  /** What the platform holds there was never seen: somebody else made the user. */
  unknownThere: FixedField[];
}

const PROFILE_FIELDS = ['email', 'firstName', 'lastName'] as const;

/**
 * Compares what is wanted with what the platform was given. A user who was found by its email had that email then, and
 * names that nobody told; of a user whom an event or a human being named nothing is known, unless a lost create made it.
 *
 * @param given the profile with which the user was made or found; null: neither
 */
export function platformCopy(row: PersonRow, wanted: Profile, given: Profile | null): PlatformCopy {
  if (row.person.platformUserId === null) return { notPushable: [], unknownThere: [] };
  const known = PROFILE_FIELDS.filter((field) => given && (row.origin !== 'linked' || field === 'email'));
  const copy: PlatformCopy = {
    notPushable: known.filter((field) => wanted[field] !== given?.[field]),
    unknownThere: PROFILE_FIELDS.filter((field) => !known.includes(field)),
  };
  if (row.kind === 'provider') return copy;
  // The list of providers has no order that the platform states: the primary is whom the create named.
  const primary = row.context.providers[0]?.platformUserId ?? null;
  const { givenPrimary } = row.person;
  if (givenPrimary === null) copy.unknownThere.push('primaryProvider');
  else if (primary !== null && primary !== givenPrimary) copy.notPushable.push('primaryProvider');
  return copy;
}
