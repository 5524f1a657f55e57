import { Problem } from '../../http/problem/problem.js';
import { isCreate, isFoundByEmailAlone } from './next-step.js';
import type { Person, PersonState } from './person.js';

export const RESOLVE_ACTIONS = ['link', 'create', 'retry', 'ignore', 'delete'] as const;

/** How a human being may resolve a person that the service could not settle. */
export type ResolveAction = (typeof RESOLVE_ACTIONS)[number];

/** Why an action can't be taken now. */
const REFUSALS = {
  'call-under-way': 'A call for this person is under way or not settled; wait until it needs a review or has failed.',
  'has-platform-user':
    'This person has a user on the platform, and create would make a second one; resolve with retry, or link to another user.',
  'nothing-to-resolve': 'Nothing is to be settled for this person; only one that needs a review or has failed can be.',
};

/**
 * Checks that a person may be resolved by this action: only one that needs it, so that a good mapping is never dropped
 * and nobody is created twice. A person with a user is created anew only when the platform has lost that user; one that
 * the service has not begun with may be linked, too.
 *
 * @throws {Problem} 409
 */
export function checkResolve(action: ResolveAction, state: PersonState, person: Person): void {
  const refusal = refusalOf(action, state, person);
  if (refusal) throw new Problem(409, refusal, REFUSALS[refusal], { extensions: { state } });
}

function refusalOf(action: ResolveAction, state: PersonState, person: Person): keyof typeof REFUSALS | null {
  if (action === 'delete') return !person.wanted && isFoundByEmailAlone(person) ? null : 'nothing-to-resolve';
  const isLost = person.review === 'platform-user-missing';
  if (action === 'create' && person.platformUserId !== null && !isLost) {
    return state === 'needs-review' || state === 'failed' ? 'has-platform-user' : 'nothing-to-resolve';
  }
  if (action === 'retry' || state === 'needs-review' || state === 'failed') return null;
  if (person.attempt) return 'call-under-way';
  return action === 'link' && person.wanted && person.platformUserId === null ? null : 'nothing-to-resolve';
}

/** No call of the person is open, and nothing that the platform holds of it is known. */
const UNKNOWN = { attempt: null, appliedProviders: null, checkedAbsentAt: null, roleKnown: true };

const CALM = { review: null, retryAt: null, failures: 0, lostCreates: 0 };

/** A person that was resolved. Pure. */
export function applyResolve(person: Person, action: Exclude<ResolveAction, 'link'>): Person {
  const calm: Person = { ...person, ...CALM };
  switch (action) {
    case 'create':
      return { ...calm, ...UNKNOWN, platformUserId: null, fault: null };
    case 'retry':
      return { ...calm, fault: null, checkedAbsentAt: null };
    case 'delete':
      return { ...calm, roleKnown: true };
    case 'ignore': {
      if (person.wanted) return { ...calm, fault: 'ignored' };
      const platformUserId = isFoundByEmailAlone(person) ? null : person.platformUserId;
      return { ...calm, attempt: null, fault: null, platformUserId };
    }
  }
}

/** A person that was linked to a user of the platform, by an event or a human being. Pure. */
export function applyLink(person: Person, platformUserId: string): Person {
  const givenPrimary = person.attempt && isCreate(person.attempt) ? person.givenPrimary : null;
  return { ...person, ...CALM, ...UNKNOWN, fault: null, platformUserId, givenPrimary };
}

/** A person whose user, found by the email, is another one's. Pure. */
export function applyUnlink(person: Person): Person {
  return { ...person, ...UNKNOWN, fault: null, review: 'role-mismatch', platformUserId: null };
}
