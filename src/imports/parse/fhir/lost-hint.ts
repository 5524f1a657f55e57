import type { LostReason } from '../row/import-row.js';

/** Hints about the cause and the correction, by reason. The first reason that applies is the easiest to correct. */
const HINTS: Record<LostReason, string> = {
  rejected: "The provider's own row was rejected. Correct that row",
  ambiguous: "Two or more practitioners have the provider's identifier. Refer to one Practitioner",
  'role-without-practitioner':
    'The provider is given by a PractitionerRole without a practitioner. Add the practitioner to the role',
  unknown:
    'The reference to the provider leads to no known practitioner. Import practitioners and roles first or together',
  'other-server':
    'The reference to the provider is a URL of another server. Import its practitioners together, with their fullUrl',
  contained: 'The provider is a contained resource without an identifier. Refer to a Practitioner',
  'display-only': 'The provider is given only by display name. Add a reference to the Practitioner',
  organization: 'The provider is an organization, not a practitioner. Add a reference to the Practitioner',
};

/** Explains to the sender why no reference of a client leads to a provider. */
export function lostHint(lost: ReadonlyMap<LostReason, number>): string {
  const reasons = Object.keys(HINTS) as LostReason[];
  const reason = reasons.find((one) => lost.has(one)) ?? 'unknown';
  return `${HINTS[reason]}, or give the import a default provider.`;
}
