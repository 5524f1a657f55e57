import type { CallStep } from './next-step.js';
import type { Attempt, Person, Refusal } from './person.js';

/** The outcome of a user-management call. */
export type Answer =
  | { kind: PlainAnswer }
  | { kind: 'exists'; userId: string; heldByAnother: boolean; role: 'fits' | 'differs' | null }
  | { kind: 'created'; userId: string; heldByAnother: boolean };

/**
 * `not-found`: the user does not exist; a 404 that may come from a wrong address is `refused-for-all` instead.
 * `conflict`: 409 to a create, whose email is in use although the check did not find it.
 */
export type PlainAnswer =
  | ('absent' | 'applied' | 'deleted' | 'not-found' | 'rejected' | 'conflict')
  | ('forbidden' | 'refused-for-all' | 'rate-limited' | 'not-sent' | 'unreachable' | 'unknown');

/** A granted call: its row in the log, and the time from which it can no longer take effect. */
type GrantedCall = Record<'now' | 'lookUpAt', Date> & { callId: string };

/** A completed call. */
interface AnsweredCall extends GrantedCall {
  /** Earliest retry after a transient fault. */
  retryAt: Date;
  /** True if the EHR changed the desired state after the call was sent, so its result may describe outdated data. */
  outdated: boolean;
  /** Earliest next create of a person whose creates got no answer. */
  createAgainAt: Date;
}

/** Maximum consecutive creates without an answer; then the person needs review. The last waits take an hour each. */
const LOST_CREATES_MAX = 13;

/** Records a call before it is sent, because a create, a list or a delete may take effect without an answer. */
export function applyGrant(person: Person, step: CallStep, { callId, now, lookUpAt }: GrantedCall): Person {
  const attempt: Attempt = { callId, operation: step.operation, email: person.email, lookUpAt };
  const earlier = person.attempt?.operation === step.operation ? person.attempt : null;
  switch (step.operation) {
    case 'checkUser':
      return person;
    case 'createProvider':
    case 'createClient':
      return { ...person, attempt, checkedAbsentAt: null };
    case 'setClientProviders':
      // The answer to this list does not settle an earlier one, which may still take effect after it.
      return {
        ...person,
        attempt: earlier && now < earlier.lookUpAt ? { ...earlier, lookUpAt } : attempt,
        appliedProviders: null,
      };
    case 'deleteUser':
      return { ...person, attempt: earlier ?? attempt, appliedProviders: null };
  }
}

/**
 * Merges the answer to a call into the known state. Pure. Never changes the desired state, which may be newer than the
 * call.
 */
export function applyAnswer(person: Person, step: CallStep, answer: Answer, call: AnsweredCall): Person {
  const after = merge(person, step, answer, call);
  const refusal = refusalAfter(person, step, answer, call.now);
  return refusal === after.refusal ? after : { ...after, refusal };
}

function merge(person: Person, step: CallStep, answer: Answer, call: AnsweredCall): Person {
  const known = answer.kind === 'unknown' ? person : settle(person, call.callId);
  const cleared: Person = { ...known, failures: 0, retryAt: null };
  // This check only tests whether the platform answers; its result is not about this client.
  if (step.subject === 'primary' && READABLE.includes(answer.kind)) return cleared;
  switch (answer.kind) {
    case 'absent': {
      const isWanted = !call.outdated && (step.subject === 'wanted' || person.attempt?.email === person.email);
      // Keeps the failures of an earlier create, which would otherwise be retried without a pause.
      const { failures } = person;
      const absent: Person = { ...cleared, failures, attempt: null, checkedAbsentAt: isWanted ? call.now : null };
      return step.subject === 'attempted' && person.wanted ? backOff(absent, call) : absent;
    }
    case 'exists':
      // The person may have another email or user by now; never link or delete a user of someone else.
      if (step.subject === 'wanted' && (call.outdated || person.platformUserId !== null)) return cleared;
      if (person.platformUserId !== null)
        return isSecondUser(person, answer) ? { ...cleared, review: 'second-user' } : cleared;
      if (answer.role === 'differs') return { ...cleared, attempt: null, review: 'role-mismatch' };
      // The user found by the email of a lost create is the one that it created.
      if (step.subject === 'attempted') return mapUser({ ...cleared, roleKnown: true }, answer, null);
      return mapUser({ ...cleared, roleKnown: answer.role === 'fits' }, answer, null);
    case 'created':
      // An event has linked another user with this person's id, so an operator must decide which one is right.
      if (person.platformUserId !== null && person.platformUserId !== answer.userId) {
        return { ...cleared, review: 'second-user' };
      }
      // After a create, the list on the platform contains only the primary.
      return mapUser({ ...cleared, roleKnown: true }, answer, step.providerUserIds ?? []);
    case 'applied':
      return { ...cleared, appliedProviders: step.providerUserIds ?? [] };
    case 'deleted':
      return unmapUser(cleared);
    case 'not-found':
      if (step.operation === 'deleteUser') return unmapUser(cleared);
      return { ...cleared, attempt: null, review: 'platform-user-missing' };
    case 'conflict':
      if (!person.conflicted) return { ...cleared, lostCreates: 0, conflicted: true };
      return call.outdated ? cleared : { ...cleared, lostCreates: 0, conflicted: false, fault: 'rejected' };
    case 'rejected':
    case 'forbidden':
      return call.outdated ? cleared : { ...cleared, fault: answer.kind };
    case 'refused-for-all':
    case 'rate-limited':
    case 'not-sent':
      return known;
    case 'unreachable':
      return { ...known, failures: person.failures + 1, retryAt: call.retryAt };
    case 'unknown':
      return applyUnknown(person, step, call);
  }
}

/** Whether a lookup found a user of this person other than the one that an event linked. */
function isSecondUser({ platformUserId }: Person, found: Answer & { kind: 'exists' }): boolean {
  return found.userId !== platformUserId && !found.heldByAnother && found.role !== 'differs';
}

/** Delays the next create with increasing backoff; after the last one the person needs review. */
function backOff(person: Person, { createAgainAt }: AnsweredCall): Person {
  if (person.lostCreates === 0) return person;
  if (person.lostCreates < LOST_CREATES_MAX) return { ...person, retryAt: createAgainAt };
  return { ...person, review: 'create-unanswered' };
}

/** The last refusal. Any answer of the operation except a transient fault or another refusal ends it. */
function refusalAfter({ refusal }: Person, { operation }: CallStep, { kind }: Answer, now: Date): Refusal | null {
  if (kind === 'forbidden' || kind === 'refused-for-all') return { operation, at: now };
  if (TRANSIENT.includes(kind) || refusal?.operation !== operation) return refusal;
  return null;
}

const TRANSIENT: Answer['kind'][] = ['rate-limited', 'not-sent', 'unreachable', 'unknown'];

const READABLE: Answer['kind'][] = ['absent', 'exists', 'rejected', 'forbidden'];

/** Closes the attempt of a call whose outcome is known; the attempt of an earlier call stays open. */
function settle(person: Person, callId: string): Person {
  const { attempt } = person;
  if (attempt?.callId !== callId) return person;
  // The delete replaced the attempt of an open list, so the list is sent again if the client stays.
  const reopened = attempt.operation === 'deleteUser' && person.kind === 'client';
  return { ...person, attempt: reopened ? { ...attempt, operation: 'setClientProviders' } : null };
}

function applyUnknown(person: Person, step: CallStep, { callId, now, retryAt, lookUpAt }: AnsweredCall): Person {
  const failed: Person = { ...person, failures: person.failures + 1, retryAt };
  if (!person.attempt || step.operation === 'checkUser') return failed;
  if (step.operation === 'setClientProviders' || step.operation === 'deleteUser') {
    return { ...failed, attempt: { ...person.attempt, lookUpAt } };
  }
  if (person.attempt.callId !== callId) return person;
  // Without an email no lookup can find the user, so the person needs review immediately.
  const lostCreates = person.lostCreates + 1;
  return {
    ...person,
    lostCreates,
    attempt: { ...person.attempt, lookUpAt: person.attempt.email === null ? now : lookUpAt },
  };
}

function mapUser(
  person: Person,
  { userId, heldByAnother }: { userId: string; heldByAnother: boolean },
  appliedProviders: string[] | null,
): Person {
  if (heldByAnother) return { ...person, attempt: null, review: 'platform-user-taken' };
  const known = { lostCreates: 0, conflicted: false };
  return { ...person, ...known, platformUserId: userId, attempt: null, checkedAbsentAt: null, appliedProviders };
}

function unmapUser(person: Person): Person {
  const nothing = { platformUserId: null, attempt: null, checkedAbsentAt: null, review: null };
  return { ...person, ...nothing, roleKnown: true, appliedProviders: [] };
}
