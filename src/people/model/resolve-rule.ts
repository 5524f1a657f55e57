import { Problem } from '../../http/problem/problem.js';
import { isFoundOnlyByEmail } from './next-step.js';
import type { Person, PersonState } from './person.js';

export const RESOLVE_ACTIONS = ['link', 'create', 'retry', 'ignore', 'delete'] as const;

/** The actions with which an operator may resolve a person. */
export type ResolveAction = (typeof RESOLVE_ACTIONS)[number];

/** Reasons why an action is rejected. */
const REFUSALS = {
  'call-under-way': 'A call for this person is not settled. Wait until the person needs a review or has failed.',
  'has-platform-user':
    'This person has a platform user, and create would make a second one. Resolve with retry, or with link to another user.',
  'nothing-to-resolve': 'This action is only for a person that needs a review or has failed. See its state.',
};

/**
 * Checks that an action may resolve a person: only if the person needs it, so that no valid mapping is dropped and no
 * user is created twice. A person with a user is created again only if the platform lost that user. A link is accepted
 * before the first call, too.
 *
 * @throws {Problem} 409
 */
export function checkResolve(action: ResolveAction, state: PersonState, person: Person): void {
  const refusal = refusalOf(action, state, person);
  if (refusal) throw new Problem(409, refusal, REFUSALS[refusal], { extensions: { state } });
}

function refusalOf(action: ResolveAction, state: PersonState, person: Person): keyof typeof REFUSALS | null {
  if (action === 'delete') return !person.wanted && isFoundOnlyByEmail(person) ? null : 'nothing-to-resolve';
  const isLost = person.review === 'platform-user-missing';
  if (action === 'create' && person.platformUserId !== null && !isLost) {
    return state === 'needs-review' || state === 'failed' ? 'has-platform-user' : 'nothing-to-resolve';
  }
  if (action === 'retry' || state === 'needs-review' || state === 'failed') return null;
  if (person.attempt) return 'call-under-way';
  return action === 'link' && person.wanted && person.platformUserId === null ? null : 'nothing-to-resolve';
}

/** An accepted action and its effect. */
interface ResolveChoice {
  action: ResolveAction;
  does: string;
}

/** The accepted actions for a person that needs a review or has failed, otherwise none. Pure. */
export function resolveChoices(state: PersonState, person: Person): ResolveChoice[] {
  if (state !== 'needs-review' && state !== 'failed') return [];
  const possible = RESOLVE_ACTIONS.filter((action) => refusalOf(action, state, person) === null);
  return possible.map((action) => ({ action, does: person.wanted ? EFFECTS[action] : deletedEffect(action, person) }));
}

/** The effect of each action on a person that is not deleted. */
const EFFECTS: Record<ResolveAction, string> = {
  link: 'Links this person to the platform user that you name, and sends a client’s providers; creates no user.',
  create:
    'Starts over: looks up the email, then creates a user. Without an email, it creates one immediately, which may be a second one.',
  retry: 'Retries the last step with what is known.',
  ignore: 'Stops syncing this person, which stays failed until it is resolved in another way or PUT again.',
  delete: '',
};

/** The effect of an action on a deleted person. */
function deletedEffect(action: ResolveAction, person: Person): string {
  const isMapped = person.platformUserId !== null;
  switch (action) {
    case 'link':
      return 'Links this person to the platform user that you name, and deletes that user.';
    case 'create':
      return 'Counts this person as deleted, because the platform has no such user, and sends nothing.';
    case 'retry':
      return EFFECTS.retry;
    case 'delete':
      return 'Deletes the platform user that was found by the email, even if someone else uses it.';
    case 'ignore':
      return isMapped && !isFoundOnlyByEmail(person)
        ? 'Deletes the known platform user; any other user of this person stays.'
        : 'Counts this person as deleted and sends nothing; any platform user of it stays.';
  }
}

/** Forgets open calls and everything observed on the platform. */
const UNOBSERVED = { attempt: null, appliedProviders: null, checkedAbsentAt: null, roleKnown: true };

const NO_FAILURES = { review: null, retryAt: null, failures: 0, lostCreates: 0 };

/** Applies an action to a person. Pure. */
export function applyResolve(person: Person, action: Exclude<ResolveAction, 'link'>): Person {
  const cleared: Person = { ...person, ...NO_FAILURES };
  switch (action) {
    case 'create':
      return { ...cleared, ...UNOBSERVED, platformUserId: null, fault: null };
    case 'retry':
      return { ...cleared, fault: null, checkedAbsentAt: null };
    case 'delete':
      return { ...cleared, roleKnown: true };
    case 'ignore': {
      if (person.wanted) return { ...cleared, fault: 'ignored' };
      const platformUserId = isFoundOnlyByEmail(person) ? null : person.platformUserId;
      return { ...cleared, attempt: null, fault: null, platformUserId };
    }
  }
}

/** Links a person to a platform user, for an event or an operator. Pure. */
export function applyLink(person: Person, platformUserId: string): Person {
  return { ...person, ...NO_FAILURES, ...UNOBSERVED, fault: null, platformUserId };
}

/** Unlinks a person from a user that belongs to someone else. Pure. */
export function applyUnlink(person: Person): Person {
  return { ...person, ...UNOBSERVED, fault: null, review: 'role-mismatch', platformUserId: null };
}
