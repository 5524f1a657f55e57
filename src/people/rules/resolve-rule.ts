import { Problem } from '../../http/problem/problem.js';
import { DELETION_EFFECTS } from '../../words/person-words.js';
import { type CodeOf, codesOf, WORDS } from '../../words/words.js';
import { isFoundOnlyByEmail, nextStep } from './next-step.js';
import { type DecisionContext, NO_USER, type Origin, type Person, type PersonState, RESET_ON_WRITE } from './person.js';
import { type Fault, type Review, UNSETTLED_STATES } from './person-codes.js';

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
  'nothing-to-resolve':
    'This action is not for a person in this state. Resolve with one of the choices, if there are any.',
};

/**
 * Checks that an action may resolve a person: only if the person needs it, so that no valid mapping is dropped and no
 * user is created twice. A person with a user is created again only if the platform lost that user. A link is accepted
 * before the first call, too.
 *
 * @throws {Problem} 409 with the accepted `choices`
 */
export function checkResolve(
  action: ResolveAction,
  state: PersonState,
  person: Person,
  context: DecisionContext,
): void {
  const refusal = refusalOf(action, state, person);
  if (!refusal) return;
  const choices = resolveChoices(state, person, context).map((choice) => choice.action);
  throw new Problem(refusal, REFUSALS[refusal], { extensions: { state, choices } });
}

/** True if a deletion waits for an operator, because the user may be someone else. */
const isDeletionInReview = (person: Person): boolean => !person.wanted && isFoundOnlyByEmail(person);

/** Why an action cannot resolve a person; null if it can. Pure. */
export function refusalOf(action: ResolveAction, state: PersonState, person: Person): keyof typeof REFUSALS | null {
  // The answer must not meet a person that the operator has decided about.
  if (person.call && action !== 'retry') return 'call-under-way';
  if (action === 'delete') return isDeletionInReview(person) ? null : 'nothing-to-resolve';
  const isOpen = UNSETTLED_STATES.some((unsettled) => unsettled === state);
  if (action === 'deleted') {
    return isOpen && !person.wanted && person.review === 'delete-unconfirmed' ? null : 'nothing-to-resolve';
  }
  if (action === 'create' && !person.wanted) return 'nothing-to-resolve';
  const isLost = person.review === 'platform-user-missing' || person.review === 'delete-unconfirmed';
  if (action === 'create' && person.platformUserId !== null && !isLost) {
    return isOpen ? 'has-platform-user' : 'nothing-to-resolve';
  }
  if (action === 'retry' || isOpen) return null;
  if (person.unsettled) return 'call-under-way';
  return action === 'link' && person.wanted && person.platformUserId === null ? null : 'nothing-to-resolve';
}

/** An accepted action and its effect. */
interface ResolveChoice {
  action: ResolveAction;
  does: string;
}

/** The actions that lead a person on which needs a review or has failed, otherwise none. Pure. */
export function resolveChoices(state: PersonState, person: Person, context: DecisionContext): ResolveChoice[] {
  if (!UNSETTLED_STATES.some((unsettled) => unsettled === state)) return [];
  const possible = RESOLVE_ACTIONS.filter(
    (action) => refusalOf(action, state, person) === null && leadsOn(action, person, context),
  );
  return possible.map((action) => ({ action, does: effectOf(action, person) }));
}

/** False if the person would stop again for the same reason. */
function leadsOn(action: ResolveAction, person: Person, context: DecisionContext): boolean {
  if (action === 'link' || action === 'delete') return true;
  const before = nextStep(person, context);
  // The other person may only have an account that had the email.
  if (action === 'retry' && before.do === 'rest' && before.code === 'email-taken') return true;
  const after = nextStep(applyResolve(person, action, context), context);
  return before.do !== 'rest' || after.do !== 'rest' || before.code !== after.code;
}

function effectOf(action: ResolveAction, { wanted }: Person): string {
  const effects: Partial<Record<ResolveAction, string>> = wanted ? {} : DELETION_EFFECTS;
  return effects[action] ?? WORDS.resolveAction[action].hint ?? '';
}

/** Reviews that follow from what is known about a person, so that a retry leads to them again. */
const LASTING: readonly (Review | Fault)[] = [
  ...(['email-taken', 'create-unknown', 'restored-unknown', 'delete-unknown', 'delete-linked'] as const),
];

/** True if a retry may lead on the people who stop with this code. */
export const endsByRetry = (code: Review | Fault): boolean => !LASTING.includes(code);

/** Forgets open calls and everything observed on the platform. */
const UNOBSERVED = { unsettled: null, appliedProviders: null, checkedAbsentAt: null };

const RESET = { ...RESET_ON_WRITE, review: null } as const;

/** Applies an action to a person. Pure. */
export function applyResolve(
  person: Person,
  action: Exclude<ResolveAction, 'link'>,
  { now }: Pick<DecisionContext, 'now'>,
): Person {
  const reset: Person = { ...person, ...RESET };
  const unmapped: Person = { ...reset, ...UNOBSERVED, ...NO_USER };
  switch (action) {
    case 'create':
      // The operator has looked, as no lookup can without an email.
      return { ...unmapped, checkedAbsentAt: person.email === null ? now : null };
    case 'deleted':
      return unmapped;
    case 'retry':
      return { ...reset, checkedAbsentAt: null };
    case 'delete':
      return { ...reset, origin: 'resolved' };
    case 'ignore':
      return person.wanted ? { ...reset, fault: 'ignored' } : unmapped;
  }
}

/**
 * True if an action takes the user from a person that had it, so that its sessions must still lead to this person. A user that was
 * found by its email only may be someone else’s. Pure.
 */
export function keepsFormerUser(action: ResolveAction, person: Person): boolean {
  if (action === 'ignore') return !person.wanted && !isFoundOnlyByEmail(person);
  return action === 'create' || action === 'deleted';
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
