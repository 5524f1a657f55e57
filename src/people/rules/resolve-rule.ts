import { Problem } from '../../http/problem/problem.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import { isFoundOnlyByEmail } from './next-step.js';
import { NO_USER, type Origin, type Person, type PersonState, RESET_ON_WRITE } from './person.js';

/** The actions with which an operator may resolve a person. */
export const RESOLVE_ACTIONS = codesOf(WORDS.resolveAction);
export type ResolveAction = CodeOf<'resolveAction'>;

/** The actions that one request may apply to many people: a link names one user, and a deletion is confirmed one by one. */
export const BULK_ACTIONS = ['create', 'retry', 'ignore'] as const satisfies readonly ResolveAction[];
export type BulkAction = (typeof BULK_ACTIONS)[number];

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
 * @throws {Problem} 409 with the accepted `choices`
 */
export function checkResolve(action: ResolveAction, state: PersonState, person: Person): void {
  const refusal = refusalOf(action, state, person);
  if (!refusal) return;
  const choices = resolveChoices(state, person).map((choice) => choice.action);
  throw new Problem(refusal, REFUSALS[refusal], { extensions: { state, choices } });
}

/** True if a deletion waits for an operator, because the user may be someone else. */
const isDeletionInReview = (person: Person): boolean => !person.wanted && isFoundOnlyByEmail(person);

/** Why an action cannot resolve a person; null if it can. Pure. */
export function refusalOf(action: ResolveAction, state: PersonState, person: Person): keyof typeof REFUSALS | null {
  // The answer must not meet a person that the operator has decided about.
  if (person.call && action !== 'retry') return 'call-under-way';
  if (action === 'delete') return isDeletionInReview(person) ? null : 'nothing-to-resolve';
  const isLost = person.review === 'platform-user-missing' || person.review === 'delete-unconfirmed';
  if (action === 'create' && person.platformUserId !== null && !isLost) {
    return state === 'needs-review' || state === 'failed' ? 'has-platform-user' : 'nothing-to-resolve';
  }
  if (action === 'retry' || state === 'needs-review' || state === 'failed') return null;
  if (person.unsettled) return 'call-under-way';
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
  return possible.map((action) => ({
    action,
    does: person.wanted ? EFFECTS[action] : deletedEffect(action, person, isDeletionInReview(person)),
  }));
}

/** The effect of each action on a person that is not deleted. */
const EFFECTS: Record<ResolveAction, string> = {
  link: 'Links this person to the platform user that you name, and sends a client’s providers; creates no user.',
  create:
    'Starts over: looks up the email, then creates a user. Without an email, it creates one immediately, which may be a second one.',
  retry: 'Repeats the last step with the current data.',
  ignore: 'Stops syncing this person, which stays failed until it is resolved in another way or PUT again.',
  delete: '',
};

/** The effect of an action on a deleted person. */
function deletedEffect(action: ResolveAction, person: Person, isInReview: boolean): string {
  switch (action) {
    case 'link':
      return 'Links this person to the platform user that you name, and deletes that user.';
    case 'create':
      return 'Counts this person as deleted, because the platform has no such user, and sends nothing.';
    case 'retry':
      return EFFECTS.retry;
    case 'delete':
      return 'Deletes the linked platform user, even if someone else uses it. Any other user of this person stays.';
    case 'ignore':
      return person.platformUserId !== null && !isInReview
        ? 'Deletes the known platform user; any other user of this person stays.'
        : 'Counts this person as deleted and sends nothing; any platform user of it stays.';
  }
}

/** Forgets open calls and everything observed on the platform. */
const UNOBSERVED = { unsettled: null, appliedProviders: null, checkedAbsentAt: null };

const RESET = { ...RESET_ON_WRITE, review: null } as const;

/** Applies an action to a person at a time. Pure. */
export function applyResolve(person: Person, action: Exclude<ResolveAction, 'link'>, now: Date): Person {
  const reset: Person = { ...person, ...RESET };
  switch (action) {
    case 'create':
      return {
        ...{ ...reset, ...UNOBSERVED, ...NO_USER },
        // The operator has looked, as no lookup can without an email.
        checkedAbsentAt: person.email === null ? now : null,
      };
    case 'retry':
      return { ...reset, checkedAbsentAt: null };
    case 'delete':
      return { ...reset, origin: 'resolved' };
    case 'ignore': {
      if (person.wanted) return { ...reset, fault: 'ignored' };
      const kept = isDeletionInReview(person) ? NO_USER : {};
      return { ...reset, unsettled: null, ...kept };
    }
  }
}

/**
 * Links a person to a platform user, for an event or an operator. A create in flight, which only an event meets, stays
 * unsettled, because it may make another user. A user that was made for the person stays with it, unless it is lost. Pure.
 */
export function applyLink(person: Person, platformUserId: string, origin: Origin): Person {
  const inFlight = person.call?.id === person.unsettled?.call ? person.unsettled : null;
  const { platformUserId: id, origin: former, role, review } = person;
  const isOwn = (former === 'created' || former === 'event') && review !== 'platform-user-missing';
  const replaced = id !== null && isOwn ? [{ id, origin: former, role }] : [];
  const others = [...person.others, ...replaced].filter((other) => other.id !== platformUserId);
  return { ...person, ...RESET, ...UNOBSERVED, unsettled: inFlight, platformUserId, origin, role: null, others };
}

/** Gives a person the user that an event names as its own; besides the one that it has. Pure. */
export function applyEvent(person: Person, id: string): Person {
  if (person.platformUserId === null) return applyLink(person, id, 'event');
  return { ...person, others: [...person.others, { id, origin: 'event', role: 'fits' }] };
}
