import type { DecisionContext, Operation, Person, PersonState } from './person.js';
import type { Review } from './person-codes.js';

/** The one platform call that comes next, and when it may leave. */
export interface CallStep {
  do: 'call';
  operation: Operation;
  state: PersonState;
  notBefore: Date | null;
  /** For a check: the email that is wanted now, the one that an unsettled create sent, or the primary provider's. */
  subject?: 'wanted' | 'attempted' | 'primary';
  /** For a client's create, the primary alone; for its list, all. Platform user ids. */
  providerUserIds?: string[];
}

/** Whether a call creates a user: the one kind that must not be made twice. */
export function isCreate({ operation }: Pick<CallStep, 'operation'>): boolean {
  return operation === 'createProvider' || operation === 'createClient';
}

/** Take the email's claim, then ask again. */
interface ClaimEmailStep {
  do: 'claim-email';
}

/** Nothing to call now; with `until`, look again then. */
interface RestStep {
  do: 'rest';
  state: PersonState;
  code: string | null;
  until: Date | null;
}

export type Step = CallStep | ClaimEmailStep | RestStep;

/** Milliseconds for which "unknown to the platform" may be relied on before a create. */
export const CHECK_FRESH_MS = 10 * 60_000;

/**
 * The single step that brings a person from what is known to what is wanted (spec, Sync rules 1 to 4). Pure: the same
 * person and context give the same step. `applyGrant` and `applyAnswer` merge its outcome, and the next one is decided.
 */
export function nextStep(person: Person, context: DecisionContext): Step {
  if (person.fault) return rest('failed', person.fault);
  return person.wanted ? towardsPresence(person, context) : towardsAbsence(person, context);
}

function towardsPresence(person: Person, context: DecisionContext): Step {
  if (person.review) return review(person.review);
  if (person.platformUserId !== null) return mirrored(person, context);
  if (person.attempt) return settleAttempt(person, context, 'pending', 'create-unknown');
  if (person.email !== null && context.claim === 'taken') return review('email-taken');
  if (person.email !== null && context.claim === 'free') return { do: 'claim-email' };
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  if (person.email !== null && !checkedLately(person, context.now)) {
    return call(person, 'checkUser', 'pending', { subject: 'wanted' });
  }
  if (person.kind === 'provider') return call(person, 'createProvider', 'pending');
  // Only a human being can clear up a lost create without an email: first a check shows whether the platform answers.
  if (person.email === null && context.answersMissing) {
    return call(person, 'checkUser', 'pending', { subject: 'primary' });
  }
  return call(person, 'createClient', 'pending', { providerUserIds: wantedList(context).slice(0, 1) });
}

function mirrored(person: Person, context: DecisionContext): Step {
  // A delete that may have been done is completed: only then is it known that the person must be created anew.
  if (person.attempt?.operation === 'deleteUser') return call(person, 'deleteUser', 'pending');
  if (person.kind === 'provider') return rest('synced', null);
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  const wanted = wantedList(context);
  if (person.appliedProviders !== null && sameList(person.appliedProviders, wanted)) {
    if (!person.attempt) return rest('synced', null);
    // An earlier list without an answer may still replace this one, which is sent again when it no longer can.
    if (context.now < person.attempt.lookUpAt) return rest('synced', null, person.attempt.lookUpAt);
  }
  return call(person, 'setClientProviders', 'pending', { providerUserIds: wanted });
}

function towardsAbsence(person: Person, context: DecisionContext): Step {
  if (person.review === 'second-user') return review(person.review);
  if (person.platformUserId !== null) {
    if (isFoundByEmailAlone(person)) return review('delete-linked');
    if (context.stillListed) return rest('deleting', 'clients-still-listed');
    return call(person, 'deleteUser', 'deleting');
  }
  if (person.attempt) return settleAttempt(person, context, 'deleting', 'delete-unknown');
  return rest('deleted', null);
}

/** Whether a client's user may be another's: it was found by an email, and its role is not known. */
export function isFoundByEmailAlone(person: Person): boolean {
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

function checkedLately(person: Person, now: Date): boolean {
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
