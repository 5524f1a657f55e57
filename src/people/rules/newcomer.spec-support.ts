import type { Person, PersonKind } from './person.js';

/** A desired person without an email, before the first call to the platform. */
export function newcomer(kind: PersonKind): Person {
  return {
    kind,
    wanted: true,
    wantedAt: new Date('2026-11-20T05:00:00Z'),
    version: 1,
    email: null,
    platformUserId: null,
    origin: null,
    role: null,
    others: [],
    call: null,
    unsettled: null,
    checkedAbsentAt: null,
    appliedProviders: null,
    fault: null,
    review: null,
    refused: null,
    failures: 0,
    dueAt: null,
  };
}
