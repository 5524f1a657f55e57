import { Problem } from '../../http/problem/problem.js';
import { isFoundByEmailAlone } from './next-step.js';
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

/** An action that would be taken, and what it does. */
interface ResolveChoice {
  action: ResolveAction;
  does: string;
}

/** How a person that needs a review or has failed may be resolved; none for anybody else. Pure. */
export function resolveChoices(state: PersonState, person: Person): ResolveChoice[] {
  if (state !== 'needs-review' && state !== 'failed') return [];
  const possible = RESOLVE_ACTIONS.filter((action) => refusalOf(action, state, person) === null);
  return possible.map((action) => ({ action, does: person.wanted ? KEEPS[action] : removes(action, person) }));
}

/** What each action does for a person who is wanted. */
const KEEPS: Record<ResolveAction, string> = {
  link: 'Takes the user of the platform that is named for this person; nobody is created, and a client’s providers are sent.',
  create:
    'Begins anew as if nothing were known: an email is looked up first; without one a user is created at once, a second one if an earlier call made one.',
  retry: 'Goes on from what is known, and takes the same way again.',
  ignore: 'Sends nothing for this person, who counts as failed until it is resolved otherwise.',
  delete: '',
};

/** What an action does for a person who is to be gone. */
function removes(action: ResolveAction, person: Person): string {
  const isMapped = person.platformUserId !== null;
  switch (action) {
    case 'link':
      return 'Takes the user of the platform that is named for this person, and deletes that user.';
    case 'create':
      return 'Takes it that the platform has no such user: the person counts as deleted, and nothing is sent.';
    case 'retry':
      return 'Goes on from what is known, and takes the same way again.';
    case 'delete':
      return 'Deletes the user of the platform that the email led to, whoever else may use it.';
    case 'ignore':
      return isMapped && !isFoundByEmailAlone(person)
        ? 'Deletes the user that is known; what else the platform may have of this person stays.'
        : 'Sends nothing: the person counts as deleted, and what the platform may have of it stays.';
  }
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
  return { ...person, ...CALM, ...UNKNOWN, fault: null, platformUserId };
}

/** A person whose user, found by the email, is another one's. Pure. */
export function applyUnlink(person: Person): Person {
  return { ...person, ...UNKNOWN, fault: null, review: 'role-mismatch', platformUserId: null };
}
