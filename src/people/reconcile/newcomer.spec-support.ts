import type { Person, PersonKind } from '../model/person.js';

/** Somebody who is wanted, has no email, and of whom the platform has not been asked yet. */
export function newcomer(kind: PersonKind): Person {
  return {
    kind,
    wanted: true,
    email: null,
    platformUserId: null,
    roleKnown: true,
    attempt: null,
    lostCreates: 0,
    conflicted: false,
    checkedAbsentAt: null,
    appliedProviders: null,
    fault: null,
    review: null,
    refusal: null,
    retryAt: null,
    failures: 0,
  };
}
