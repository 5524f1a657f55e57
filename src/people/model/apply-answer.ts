import type { CallStep } from './next-step.js';
import type { Attempt, Origin, Person, Refusal } from './person.js';

/** The outcome of a user-management call. */
export type Answer =
  | { kind: PlainAnswer }
  | { kind: 'rejected'; isFinal: boolean }
  | { kind: 'exists'; userId: string; heldByAnother: boolean; role: 'fits' | 'differs' | null }
  | { kind: 'created'; userId: string; heldByAnother: boolean };

/**
 * `not-found`: the user does not exist; `doubtful`: a 404 that may come from a wrong URL. `forbidden`: a 403 for this
 * person only; `stopped`: an answer that stops the operation for everyone.
 */
export type PlainAnswer =
  | ('absent' | 'applied' | 'deleted' | 'not-found' | 'doubtful')
  | ('forbidden' | 'stopped' | 'rate-limited' | 'not-sent' | 'unreachable' | 'unknown');

/** A granted call: its row in the log, and the time from which it can no longer take effect. */
type GrantedCall = Record<'now' | 'lookUpAt', Date> & { callId: string };

/** A completed call. */
interface AnsweredCall extends GrantedCall {
  /** Earliest retry after a transient fault. */
  retryAt: Date;
  /** True if the EHR changed the desired state after the call was sent, so its result may describe outdated data. */
  outdated: boolean;
}

/** The waits before a rejected call is repeated: then hourly, for a day in all. */
const REFUSAL_WAITS_MS = [15_000, 120_000, 900_000];
const HOUR_MS = 3_600_000;

/** Refusals in a row after which a rejection is final, regardless of other people. */
const REFUSALS_MAX = REFUSAL_WAITS_MS.length + 24;

/**
 * True if a rejection is final: the operation succeeds for other people, or it was repeated for a day.
 *
 * @param refusal the operation's previous refusal of this person
 * @param isOwn true if the rejection is only this person's (`isOwnRefusal`)
 * @param isStopped true if the operation is blocked for everyone, so that the rejection may be everyone's
 */
export function isFinalRejection(refusal: Refusal | null, isOwn: boolean, isStopped: boolean): boolean {
  return isOwn || (!isStopped && refusal !== null && refusal.count >= REFUSALS_MAX);
}

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
  const isSameUser = after.platformUserId === person.platformUserId;
  const refusal = isSameUser ? refusalAfter(person, step, answer, call) : null;
  return refusal === after.refusal ? after : { ...after, refusal };
}

function merge(person: Person, step: CallStep, answer: Answer, call: AnsweredCall): Person {
  const known = settle(person, call.callId);
  const cleared: Person = { ...known, failures: 0, retryAt: null };
  // This check only shows whether the platform answers; its result is not about this person.
  if (step.subject === 'any' && READABLE.includes(answer.kind)) return cleared;
  switch (answer.kind) {
    case 'absent': {
      const isWanted = !call.outdated && (step.subject === 'wanted' || person.attempt?.email === person.email);
      // Keeps the failures of an earlier create, which would otherwise be repeated without a pause.
      const { failures } = person;
      const retryAt = step.subject === 'attempted' && person.wanted && failures > 0 ? call.retryAt : null;
      return { ...cleared, failures, retryAt, attempt: null, checkedAbsentAt: isWanted ? call.now : null };
    }
    case 'exists':
      // The person may have another email or user by now; never link or delete a user of someone else.
      if (person.platformUserId !== null || (step.subject === 'wanted' && call.outdated)) return cleared;
      if (answer.role === 'differs') return { ...cleared, attempt: null, review: 'role-mismatch' };
      // The user found by the email of a lost create is the one that it created.
      return mapUser(cleared, answer, step.subject === 'attempted' ? 'created' : 'linked', null);
    case 'created':
      // An event linked another user with this person's id; the user of this create stays unmapped (`secondUserOf`).
      if (person.platformUserId !== null && person.platformUserId !== answer.userId) return cleared;
      // After a create, the list on the platform contains only the primary.
      return mapUser(cleared, answer, 'created', step.providerUserIds ?? []);
    case 'applied':
      return { ...cleared, appliedProviders: step.providerUserIds ?? [] };
    case 'deleted':
      return unmapUser(cleared);
    case 'not-found':
      if (step.operation === 'deleteUser') return unmapUser(cleared);
      return { ...cleared, attempt: null, review: 'platform-user-missing' };
    case 'rejected': {
      if (call.outdated) return cleared;
      if (answer.isFinal) return { ...cleared, fault: 'rejected' };
      const waitMs = REFUSAL_WAITS_MS[refusalsBefore(person, step)] ?? HOUR_MS;
      return { ...cleared, retryAt: new Date(call.now.getTime() + waitMs) };
    }
    case 'forbidden':
      return call.outdated ? cleared : { ...cleared, fault: 'forbidden' };
    case 'doubtful':
      return cleared;
    case 'stopped':
    case 'rate-limited':
    case 'not-sent':
      return known;
    case 'unreachable':
      return { ...known, failures: person.failures + 1, retryAt: call.retryAt };
    case 'unknown':
      return applyUnknown(person, step, call);
  }
}

/** The user of an answer, if an event has linked its person to another user; otherwise undefined. */
export function secondUserOf(person: Person, step: CallStep, answer: Answer): string | undefined {
  if (person.platformUserId === null || (answer.kind !== 'created' && answer.kind !== 'exists')) return undefined;
  if (answer.userId === person.platformUserId || answer.heldByAnother) return undefined;
  if (answer.kind === 'exists' && (step.subject !== 'attempted' || answer.role === 'differs')) return undefined;
  return answer.userId;
}

/** The latest refusal. Any answer of the operation except a transient fault or another refusal ends it. */
function refusalAfter(person: Person, step: CallStep, answer: Answer, { now, outdated }: AnsweredCall): Refusal | null {
  const { refusal } = person;
  const { operation } = step;
  const refused = (kind: Refusal['kind']) => ({ operation, kind, at: now, count: refusalsBefore(person, step) + 1 });
  if (answer.kind === 'stopped') return refusal?.kind === 'rejected' ? refusal : refused('stopped');
  if (answer.kind === 'doubtful') return refused('doubtful');
  if (answer.kind === 'rejected' && !answer.isFinal && !outdated) return refused('rejected');
  if (TRANSIENT.includes(answer.kind) || refusal?.operation !== operation) return refusal;
  return null;
}

function refusalsBefore({ refusal }: Person, { operation }: CallStep): number {
  return refusal?.operation === operation ? refusal.count : 0;
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
  const attempt = { ...person.attempt, lookUpAt: person.attempt.email === null ? now : lookUpAt };
  return { ...person, failures: person.failures + 1, attempt };
}

function mapUser(
  person: Person,
  { userId, heldByAnother }: { userId: string; heldByAnother: boolean },
  origin: Origin,
  appliedProviders: string[] | null,
): Person {
  if (heldByAnother) return { ...person, attempt: null, review: 'platform-user-taken' };
  return { ...person, platformUserId: userId, origin, attempt: null, checkedAbsentAt: null, appliedProviders };
}

function unmapUser(person: Person): Person {
  const nothing = { platformUserId: null, origin: null, attempt: null, checkedAbsentAt: null, review: null };
  return { ...person, ...nothing, appliedProviders: [] };
}
