import type { CallStep } from './next-step.js';
import type { Attempt, Person, Refusal } from './person.js';

/** What a user-management call came to. */
export type Answer =
  | { kind: PlainAnswer }
  | { kind: 'exists'; userId: string; heldByAnother: boolean; role: 'fits' | 'differs' | null }
  | { kind: 'created'; userId: string; heldByAnother: boolean };

/**
 * `not-found`: the user is gone; a 404 of what may be a wrong address is refused for all instead. `conflict`: 409 to a
 * create with an email, which is in use whatever the check said.
 */
export type PlainAnswer =
  | ('absent' | 'applied' | 'deleted' | 'not-found' | 'rejected' | 'conflict')
  | ('forbidden' | 'refused-for-all' | 'rate-limited' | 'not-sent' | 'unreachable' | 'unknown');

/** A call that is granted: its row in the log, and the moment from which on it can take no more effect. */
type GrantedCall = Record<'now' | 'lookUpAt', Date> & { callId: string };

/** A call that is over. */
interface AnsweredCall extends GrantedCall {
  /** Not before this moment, should the answer be a transient fault. */
  retryAt: Date;
  /** Whether the EHR wanted something since the call left: what it found or was refused may not be meant any more. */
  outdated: boolean;
  /** Not before this moment is a person created again whose creates got no answer so often. */
  createAgainAt: Date;
}

/** Creates without an answer in a row after which a human being must look: the last waits of an hour are over then. */
const LOST_CREATES_MAX = 13;

/** What must be on record before a call leaves: a create, a delete or a list may be done and its answer be lost. */
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
      // An earlier list may still take effect after this one, whose answer does not settle that.
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
 * Merges the answer of a call into what is known. Pure; the wanted side may have changed since the call left and is
 * never touched.
 */
export function applyAnswer(person: Person, step: CallStep, answer: Answer, call: AnsweredCall): Person {
  const after = merged(person, step, answer, call);
  const refusal = refusalAfter(person, step, answer, call.now);
  return refusal === after.refusal ? after : { ...after, refusal };
}

function merged(person: Person, step: CallStep, answer: Answer, call: AnsweredCall): Person {
  const known = answer.kind === 'unknown' ? person : settled(person, call.callId);
  const calm: Person = { ...known, failures: 0, retryAt: null };
  // That the platform answers is all that was asked; what it says is not about this client.
  if (step.subject === 'primary' && READABLE.includes(answer.kind)) return calm;
  switch (answer.kind) {
    case 'absent': {
      const isWanted = !call.outdated && (step.subject === 'wanted' || person.attempt?.email === person.email);
      // The faults of a create before it count on: else it would be made again without a pause.
      const { failures } = person;
      const absent: Person = { ...calm, failures, attempt: null, checkedAbsentAt: isWanted ? call.now : null };
      return step.subject === 'attempted' && person.wanted ? backedOff(absent, call) : absent;
    }
    case 'exists':
      // The email may be another's by now, or the person linked: another's user is neither linked nor deleted.
      if (step.subject === 'wanted' && (call.outdated || person.platformUserId !== null)) return calm;
      if (person.platformUserId !== null)
        return isSecondUser(person, answer) ? { ...calm, review: 'second-user' } : calm;
      if (answer.role === 'differs') return { ...calm, attempt: null, review: 'role-mismatch' };
      // The user found by the email of a lost create is the one it made.
      if (step.subject === 'attempted') return mapped({ ...calm, roleKnown: true }, answer, null);
      return mapped({ ...calm, roleKnown: answer.role === 'fits' }, answer, null);
    case 'created':
      // An event has linked another user with this person's id: which of the two is right is not known here.
      if (person.platformUserId !== null && person.platformUserId !== answer.userId) {
        return { ...calm, review: 'second-user' };
      }
      // After a create the platform's list is the primary alone.
      return mapped({ ...calm, roleKnown: true }, answer, step.providerUserIds ?? []);
    case 'applied':
      return { ...calm, appliedProviders: step.providerUserIds ?? [] };
    case 'deleted':
      return unmapped(calm);
    case 'not-found':
      if (step.operation === 'deleteUser') return unmapped(calm);
      return { ...calm, attempt: null, review: 'platform-user-missing' };
    case 'conflict':
      if (!person.conflicted) return { ...calm, lostCreates: 0, conflicted: true };
      return call.outdated ? calm : { ...calm, lostCreates: 0, conflicted: false, fault: 'rejected' };
    case 'rejected':
    case 'forbidden':
      return call.outdated ? calm : { ...calm, fault: answer.kind };
    case 'refused-for-all':
    case 'rate-limited':
    case 'not-sent':
      return known;
    case 'unreachable':
      return { ...known, failures: person.failures + 1, retryAt: call.retryAt };
    case 'unknown':
      return unknown(person, step, call);
  }
}

/** Whether a look-up found another user of this person than the one that an event linked. */
function isSecondUser({ platformUserId }: Person, found: Answer & { kind: 'exists' }): boolean {
  return found.userId !== platformUserId && !found.heldByAnother && found.role !== 'differs';
}

/** A create that is lost again and again is tried ever more rarely, and in the end needs a review. */
function backedOff(person: Person, { createAgainAt }: AnsweredCall): Person {
  if (person.lostCreates === 0) return person;
  if (person.lostCreates < LOST_CREATES_MAX) return { ...person, retryAt: createAgainAt };
  return { ...person, review: 'create-unanswered' };
}

/** A transient fault says nothing of who may call; any other answer of the operation ends an earlier refusal. */
function refusalAfter({ refusal }: Person, { operation }: CallStep, { kind }: Answer, now: Date): Refusal | null {
  if (kind === 'forbidden' || kind === 'refused-for-all') return { operation, at: now };
  if (TRANSIENT.includes(kind) || refusal?.operation !== operation) return refusal;
  return null;
}

const TRANSIENT: Answer['kind'][] = ['rate-limited', 'not-sent', 'unreachable', 'unknown'];

const READABLE: Answer['kind'][] = ['absent', 'exists', 'rejected', 'forbidden'];

/** The call is known to be done or not done; an earlier one may still be open. */
function settled(person: Person, callId: string): Person {
  const { attempt } = person;
  if (attempt?.callId !== callId) return person;
  // A delete replaced the list that was open before it; should the client stay, its list is sent once more.
  const reopened = attempt.operation === 'deleteUser' && person.kind === 'client';
  return { ...person, attempt: reopened ? { ...attempt, operation: 'setClientProviders' } : null };
}

function unknown(person: Person, step: CallStep, { callId, now, retryAt, lookUpAt }: AnsweredCall): Person {
  const failed: Person = { ...person, failures: person.failures + 1, retryAt };
  if (!person.attempt || step.operation === 'checkUser') return failed;
  if (step.operation === 'setClientProviders' || step.operation === 'deleteUser') {
    return { ...failed, attempt: { ...person.attempt, lookUpAt } };
  }
  if (person.attempt.callId !== callId) return person;
  // Without an email no check can find the user: a human being decides, and has nothing to wait for.
  const lostCreates = person.lostCreates + 1;
  return {
    ...person,
    lostCreates,
    attempt: { ...person.attempt, lookUpAt: person.attempt.email === null ? now : lookUpAt },
  };
}

function mapped(
  person: Person,
  { userId, heldByAnother }: { userId: string; heldByAnother: boolean },
  appliedProviders: string[] | null,
): Person {
  if (heldByAnother) return { ...person, attempt: null, review: 'platform-user-taken' };
  const known = { lostCreates: 0, conflicted: false };
  return { ...person, ...known, platformUserId: userId, attempt: null, checkedAbsentAt: null, appliedProviders };
}

function unmapped(person: Person): Person {
  const nothing = { platformUserId: null, attempt: null, checkedAbsentAt: null, review: null };
  return { ...person, ...nothing, roleKnown: true, appliedProviders: [] };
}
