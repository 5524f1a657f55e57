import type { DecisionContext, Operation, Person, PersonState } from './person.js';
import type { Review } from './person-codes.js';

/** The next call to the platform, and when it may be sent. */
export interface CallStep {
  do: 'call';
  operation: Operation;
  state: PersonState;
  notBefore: Date | null;
  /** For a check: the desired email, the email that an unsettled create sent, or the email of the primary provider. */
  subject?: 'wanted' | 'attempted' | 'primary';
  /** Platform user ids: only the primary for a client's create, all of them for its list. */
  providerUserIds?: string[];
}

/** Whether a call creates a user. Only creates must never be repeated. */
export function isCreate({ operation }: Pick<CallStep, 'operation'>): boolean {
  return operation === 'createProvider' || operation === 'createClient';
}

/** Claim the email, then decide again. */
interface ClaimEmailStep {
  do: 'claim-email';
}

/** No call now; with `until`, decide again at that time. */
interface RestStep {
  do: 'rest';
  state: PersonState;
  code: string | null;
  until: Date | null;
}

export type Step = CallStep | ClaimEmailStep | RestStep;

/** How long a check that did not find the email allows a create. */
export const CHECK_FRESH_MS = 10 * 60_000;

/**
 * The next step from the known to the desired state of a person (spec, Sync rules 1 to 4). Pure: the same person and
 * context give the same step. `applyGrant` and `applyAnswer` then merge the outcome of its call.
 */
export function nextStep(person: Person, context: DecisionContext): Step {
  if (person.fault) return rest('failed', person.fault);
  return person.wanted ? presenceStep(person, context) : absenceStep(person, context);
}

function presenceStep(person: Person, context: DecisionContext): Step {
  if (person.review) return review(person.review);
  if (person.platformUserId !== null) return mirroredStep(person, context);
  if (person.attempt) return settleAttempt(person, context, 'pending', 'create-unknown');
  if (person.email !== null && context.claim === 'taken') return review('email-taken');
  if (person.email !== null && context.claim === 'free') return { do: 'claim-email' };
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  if (person.email !== null && !isCheckFresh(person, context.now)) {
    return call(person, 'checkUser', 'pending', { subject: 'wanted' });
  }
  if (person.kind === 'provider') return call(person, 'createProvider', 'pending');
  // A lost create without an email needs review, so a check first tests whether the platform answers.
  if (person.email === null && context.answersMissing) {
    return call(person, 'checkUser', 'pending', { subject: 'primary' });
  }
  return call(person, 'createClient', 'pending', { providerUserIds: wantedList(context).slice(0, 1) });
}

function mirroredStep(person: Person, context: DecisionContext): Step {
  // A delete without an answer is completed first, so that the person can safely be created again.
  if (person.attempt?.operation === 'deleteUser') return call(person, 'deleteUser', 'pending');
  if (person.kind === 'provider') return rest('synced', null);
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  const wanted = wantedList(context);
  if (person.appliedProviders !== null && sameList(person.appliedProviders, wanted)) {
    if (!person.attempt) return rest('synced', null);
    // An earlier list without an answer may still replace this one, so this one is sent again once it cannot.
    if (context.now < person.attempt.lookUpAt) return rest('synced', null, person.attempt.lookUpAt);
  }
  return call(person, 'setClientProviders', 'pending', { providerUserIds: wanted });
}

function absenceStep(person: Person, context: DecisionContext): Step {
  if (person.review === 'second-user') return review(person.review);
  if (person.platformUserId !== null) {
    if (isFoundOnlyByEmail(person)) return review('delete-linked');
    if (context.stillListed) return rest('deleting', 'clients-still-listed');
    return call(person, 'deleteUser', 'deleting');
  }
  if (person.attempt) return settleAttempt(person, context, 'deleting', 'delete-unknown');
  return rest('deleted', null);
}

/** Whether a client's user may belong to someone else, because it was found by its email and its role is unknown. */
export function isFoundOnlyByEmail(person: Person): boolean {
  return person.kind === 'client' && person.platformUserId !== null && !person.roleKnown;
}

function settleAttempt(person: Person, context: DecisionContext, state: PersonState, code: Review): Step {
  const { attempt } = person;
  if (attempt && context.now < attempt.lookUpAt) return rest(state, 'outcome-unknown', attempt.lookUpAt);
  if (!attempt || attempt.email === null) return review(code);
  return call(person, 'checkUser', state, { subject: 'attempted' });
}

function awaitsProvider(person: Person, context: DecisionContext): boolean {
  return person.kind === 'client' && context.providers.some((provider) => provider.platformUserId === null);
}

function wantedList(context: DecisionContext): string[] {
  return context.providers.flatMap((provider) => provider.platformUserId ?? []);
}

function isCheckFresh(person: Person, now: Date): boolean {
  return person.checkedAbsentAt !== null && now.getTime() - person.checkedAbsentAt.getTime() < CHECK_FRESH_MS;
}

function sameList(left: string[], right: string[]): boolean {
  return left.length === right.length && left.every((id, position) => id === right[position]);
}

function call(
  person: Person,
  operation: Operation,
  state: PersonState,
  more: Pick<CallStep, 'subject' | 'providerUserIds'> = {},
): CallStep {
  return { do: 'call', operation, state, notBefore: person.retryAt, ...more };
}

function review(code: Review): RestStep {
  return rest('needs-review', code);
}

function rest(state: PersonState, code: string | null, until: Date | null = null): RestStep {
  return { do: 'rest', state, code, until };
}
