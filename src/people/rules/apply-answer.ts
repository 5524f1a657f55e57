import type { Verdict } from '../../platform/pauses/pause-rule.js';
import { backoff } from '../../queue/work/backoff.js';
import type { SentCall } from './apply-call.js';
import { isCreate, NO_USER, type Operation, type Origin, type Person, type RoleFit } from './person.js';
import type { Review } from './person-codes.js';

/** What a readable 2xx says, and what is known here about the user that it names. */
export type Result =
  | { kind: 'absent' | 'applied' | 'deleted' }
  | { kind: 'exists' | 'created'; userId: string; heldByAnother: boolean; role: RoleFit };

/** The answer to a call. */
export interface Answer {
  verdict: Verdict;
  /** The HTTP status; null without one. */
  status: number | null;
  /** Only with `ok`. */
  result: Result | null;
}

/** What else decides about the person. */
export interface AnswerFacts {
  now: Date;
  /** The end of a 429's pause. */
  limitedUntil: Date | null;
  /** When the operation last succeeded; for the lookup of a create, that create's operation. */
  succeededAt: Date | null;
  /** A random number in [0, 1), which spreads people whose 429 ends together. */
  fraction: number;
}

/** When a failed person is tried once more. */
const RETRY_MS = 3_600_000;

/** When a call that this process did not send is due again. */
const UNSENT_MS = 5_000;

/** How far the next calls are spread after a 429. */
const SPREAD_MS = 1_000;

/** Failures in a row that take a day (`backoff`), after which a person fails, if the operation has succeeded for others. */
const DAY_OF_FAILURES = 28;
const DAY_MS = 86_400_000;

/** Closes a call that was not sent, because this process was slow or sending was held: no failure of the person. */
export function takeBack(person: Person, callId: string, now: Date): Person {
  return { ...settle({ ...person, call: null }, callId), dueAt: new Date(now.getTime() + UNSENT_MS) };
}

/**
 * Merges the answer to a call into the known state. Pure. Never changes the desired state, which may be newer.
 *
 * | answer | check | create | list of providers | deletion | shown | who can change it |
 * |---|---|---|---|---|---|---|
 * | 2xx | found: linked; not found: create next | mapped | applied | the user is forgotten | `synced`, `deleted` | – |
 * | found, but another person's or of another role | review | review | – | – | `platform-user-taken`, `role-mismatch` | operator: link, create, ignore |
 * | 429 | again when the pause ends, at most a second later | the same | the same | the same | `rate-limited` | time |
 * | 401, 403, 405, 3xx, HTML, 404 of the address | backoff; the API or operation pauses | the same | the same | the same | `platform-unauthorized`, `platform-address` | operator: key, URL, contract |
 * | the same again, while it works for others | fails | fails | fails | fails | `forbidden` (401, 403), `rejected` | EHR, operator: retry |
 * | any other 4xx | fails | fails | fails | fails | `rejected`, with the platform's message | EHR, operator: retry |
 * | 404, the address works | fails | fails | review | the user is forgotten | `platform-user-missing` | operator: create, link |
 * | 404, perhaps of the address | – | – | a check of any email, then again; review if that is refused | the same | – | time |
 * | 404 at a path of the contract that never worked | – | – | review | review | `platform-user-missing`, `delete-unconfirmed` | operator: retry; deleted |
 * | 5xx, 408, 425, no answer, unreadable 2xx | backoff | looked up by its email after the grace period; without one, review | backoff | backoff | `platform-fault`, `outcome-unknown`, `create-unknown` | time, event, operator |
 * | not connected, cannot be decrypted | backoff | backoff | backoff | backoff | `platform-unreachable`, `unreadable` | time; operator: key |
 * | not sent: too late, held | again after 5 s | the same | the same | the same | – | time |
 *
 * A person that fails is tried once more after an hour; then it stays failed until the EHR changes it or an operator retries.
 * A day without a result, while the operation succeeds for others, fails it, too (`unanswered`). The answer to a create, or to
 * the lookup of one, maps the person even if it comes late (`applyLate`).
 */
export function applyAnswer(person: Person, call: SentCall, answer: Answer, facts: AnswerFacts): Person {
  const { now } = facts;
  const open: Person = { ...person, call: null, dueAt: person.fault ? now : null };
  const closed = settle(open, call.id);
  const failures = person.failures + 1;
  const again: Person = { ...closed, failures, dueAt: backoff(failures, now) };
  switch (answer.verdict) {
    case 'ok':
      return succeed(person, closed, call, answer.result as Result, facts);
    case 'gone':
      return call.operation === 'deleteUser' ? unmapped(closed) : reviewed({ ...closed, unsettled: null }, MISSING);
    case 'doubtful':
      return { ...closed, refused: { operation: call.operation, code: 404, at: now } };
    case 'unconfirmed':
      return unconfirmed(closed, call.operation);
    case 'refused':
    case 'personal':
      // This check only shows whether the platform answers, and cannot even show that.
      if (call.subject === 'any')
        return person.refused?.code === 404 ? unconfirmed(closed, person.refused.operation) : closed;
      // The EHR has changed the data since, or an event has named the user that an earlier create made.
      if (call.version !== person.version || (isCreate(call) && person.platformUserId !== null))
        return { ...closed, failures: 0 };
      return fail(closed, call.operation, answer.status ?? 0, now, person.fault !== null);
    case 'unauthorized':
    case 'elsewhere':
      if (call.subject === 'any') return again;
      return { ...again, refused: { operation: call.operation, code: answer.status ?? 0, at: now } };
    case 'limited': {
      const spreadMs = facts.fraction * SPREAD_MS;
      return { ...closed, dueAt: new Date((facts.limitedUntil ?? now).getTime() + spreadMs) };
    }
    case 'unsent':
      return takeBack(person, call.id, now);
    case 'unreachable':
    case 'unreadable':
      return again;
    case 'lost': {
      const lost = { ...open, failures };
      // Looked up also if it failed before.
      if (isCreate(call)) return { ...lost, fault: null, dueAt: null };
      return giveUp({ ...lost, dueAt: backoff(failures, now) }, facts);
    }
  }
}

/**
 * Merges an answer that came after another call was begun or the person was resolved. Only a user that a create made, or that
 * was found by the email of one, counts, because nothing else would lead to it.
 *
 * @param isMerged true if the call was for a client that was merged into this one
 */
export function applyLate(person: Person, call: SentCall, { result }: Answer, isMerged = false): Person {
  if (!result || !makesUser(call, result)) return person;
  if (isMerged) return withAnother(person, result);
  const closed = settle(person, call.id);
  if (person.platformUserId !== null) return withAnother(closed, result);
  return mapped(closed, result, 'created', listAfterCreate(call, result));
}

/** Keeps the user that a create made although its person has another one. */
function withAnother(person: Person, { userId: id, heldByAnother, role }: UserResult): Person {
  const isKnown = id === person.platformUserId || person.others.some((other) => other.id === id);
  if (isKnown || heldByAnother || role === 'differs') return person;
  return { ...person, others: [...person.others, { id, origin: 'created', role }] };
}

type UserResult = Extract<Result, { userId: string }>;

/** True if an answer names the user that a create of this person made. */
function makesUser(call: SentCall, result: Result): result is UserResult {
  if (result.kind === 'created') return true;
  return result.kind === 'exists' && call.subject === 'attempted' && result.role !== 'differs';
}

/** After a create, the list on the platform contains only the primary. Of a user that was found, it is unknown. */
function listAfterCreate(call: SentCall, result: UserResult): string[] | null {
  return result.kind === 'created' ? (call.providerUserIds ?? []) : null;
}

function succeed(
  before: Person,
  closed: Person,
  call: SentCall,
  result: Result,
  { now, ...facts }: AnswerFacts,
): Person {
  // A check does not show whether a repeated create or list is accepted.
  const ends = call.operation !== 'checkUser' || before.refused?.operation === 'checkUser';
  const cleared: Person = {
    ...closed,
    failures: 0,
    ...(ends && { refused: null, fault: null, dueAt: null }),
  };
  // The doubt about a 404 is over. The failures of this person's own calls stay.
  if (call.subject === 'any') return { ...closed, refused: before.refused?.code === 404 ? null : before.refused };
  const isSame = call.email === before.email;
  switch (result.kind) {
    case 'absent': {
      // Keeps the failures of an earlier create, which would otherwise be repeated without a pause, and for ever.
      const { failures } = before;
      const checked: Person = { ...cleared, failures, checkedAbsentAt: isSame ? now : null };
      if (call.subject !== 'attempted') return checked;
      const absent: Person = { ...checked, unsettled: null };
      if (!before.wanted || failures === 0) return absent;
      return giveUp({ ...absent, dueAt: backoff(failures, now) }, { now, ...facts });
    }
    case 'exists': {
      const isLookup = call.subject === 'attempted';
      if (before.platformUserId !== null)
        return isLookup ? withAnother({ ...cleared, unsettled: null }, result) : cleared;
      // The EHR has changed the email since, so that this user may be someone else.
      if (!isLookup && !isSame) return cleared;
      if (result.role === 'differs') return reviewed({ ...cleared, unsettled: null }, 'role-mismatch');
      return mapped(cleared, result, isLookup ? 'created' : 'linked', null);
    }
    case 'created': {
      if (before.platformUserId !== null && before.platformUserId !== result.userId)
        return withAnother(cleared, result);
      return mapped(cleared, result, 'created', listAfterCreate(call, result));
    }
    case 'applied':
      return { ...cleared, appliedProviders: call.providerUserIds ?? [] };
    case 'deleted':
      return unmapped(cleared);
  }
}

/** @param isFinal true if it failed before */
function fail(person: Person, operation: Operation, code: number, now: Date, isFinal: boolean): Person {
  return {
    ...person,
    fault: code === 401 || code === 403 ? 'forbidden' : 'rejected',
    refused: { operation, code, at: now },
    dueAt: isFinal ? null : new Date(now.getTime() + RETRY_MS),
  };
}

/** An operator decides. What failed before no longer counts. */
const reviewed = (person: Person, review: Review): Person => ({ ...person, review, fault: null, refused: null });

/** The platform may not know the user, or the path may be wrong. */
const unconfirmed = (person: Person, operation: Operation): Person =>
  reviewed(person, operation === 'deleteUser' ? 'delete-unconfirmed' : MISSING);

/** Fails a person without a result for a day, if the operation has succeeded for others. */
function giveUp(person: Person, { succeededAt, now }: Pick<AnswerFacts, 'succeededAt' | 'now'>): Person {
  const worksForOthers = succeededAt !== null && now.getTime() - succeededAt.getTime() < DAY_MS;
  if (person.failures < DAY_OF_FAILURES || !worksForOthers) return person;
  return { ...person, fault: 'unanswered', dueAt: null };
}

/** Ends what is unsettled because of a call whose outcome is known; that of an earlier call stays. */
function settle(person: Person, callId: string): Person {
  const { unsettled } = person;
  if (unsettled?.call !== callId) return person;
  // The deletion replaced an unsettled list, so the list is sent again if the client stays.
  const reopened = unsettled.operation === 'deleteUser' && person.kind === 'client';
  return { ...person, unsettled: reopened ? { ...unsettled, operation: 'setClientProviders' } : null };
}

function mapped(person: Person, result: UserResult, origin: Origin, appliedProviders: string[] | null): Person {
  if (result.heldByAnother) return reviewed({ ...person, unsettled: null }, 'platform-user-taken');
  const isCurrent = result.kind === 'exists' ? { unsettled: null } : {};
  const others = person.others.filter(({ id }) => id !== result.userId);
  const user = { platformUserId: result.userId, origin, role: result.role, others };
  const known = { checkedAbsentAt: null, appliedProviders };
  const reset = { fault: null, refused: null, dueAt: person.call ? person.dueAt : null };
  return { ...person, ...isCurrent, ...user, ...known, ...reset };
}

function unmapped(person: Person): Person {
  const nothing = { ...NO_USER, unsettled: null, checkedAbsentAt: null, review: null };
  return { ...person, ...nothing, appliedProviders: [], fault: null, refused: null, dueAt: null };
}

const MISSING = 'platform-user-missing';
