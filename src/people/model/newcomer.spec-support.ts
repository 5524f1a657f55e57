import type { Person, PersonKind } from './person.js';

/** A desired person without an email, before the first call to the platform. */
export function newcomer(kind: PersonKind): Person {
  return {
    kind,
    wanted: true,
    email: null,
    platformUserId: null,
    origin: null,
    attempt: null,
    checkedAbsentAt: null,
    appliedProviders: null,
    fault: null,
    review: null,
    refusal: null,
    retryAt: null,
    failures: 0,
  };
}
