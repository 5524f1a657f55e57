import { factsOf } from '../../platform/contract/operations.js';
import { type Breakers, breakerOf, isProven, isSilent, type Phase, phaseOf } from './circuit-breaker.js';
import {
  type DecisionContext,
  OPERATIONS,
  type Operation,
  type Person,
  type PersonState,
  RESTORED_CALL,
} from './person.js';
import { LEGAL_HOLD, type Review } from './person-codes.js';

/** The next call to the platform, and when it may be sent. */
export interface CallStep {
  do: 'call';
  operation: Operation;
  state: PersonState;
  notBefore: Date | null;
  /**
   * For a check: the desired email, the email that an unsettled create sent, or any known email, which only shows
   * whether the platform answers.
   */
  subject?: 'wanted' | 'attempted' | 'any';
  /** Platform user ids: only the primary for a client's create, all of them for its list. */
  providerUserIds?: string[];
}

/** True if a call creates a user. Only creates must never be repeated. */
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

/** The queue of clients without an email. Few of their creates may be in flight. */
export const BLIND_CREATE = 'createClientWithoutEmail';

/** The queues in which people wait for a call: one for each operation, and `BLIND_CREATE`. */
export const QUEUES: readonly string[] = OPERATIONS.flatMap((operation) =>
  operation === 'createClient' ? [operation, BLIND_CREATE] : [operation],
);

/** The queue in which a person waits for a call. A check that precedes a blind create waits with it. */
export function queueOf({ operation, subject }: CallStep, { email, platformUserId }: Person): string {
  const isBlind = operation === 'createClient' ? email === null : subject === 'any' && platformUserId === null;
  return isBlind ? BLIND_CREATE : operation;
}

/** The operation for which a queue waits. */
export function operationOf(queue: string): Operation {
  return queue === BLIND_CREATE ? 'createClient' : (queue as Operation);
}

/** The gate of a queue's calls; `half-open` lets out only one probe. */
export interface Gate {
  queue: string;
  phase: Phase;
  /** When an open gate lets a probe out, in milliseconds since the epoch. */
  until: number;
  /** The person of the latest probe. */
  person: string | null;
}

/** True if a queue keeps working under a hold, because its calls only read. */
export const isReading = (queue: string): boolean => factsOf(operationOf(queue)).reads;

/**
 * The gates of all queues. A blind create needs the check, too, while nothing readable comes back.
 *
 * @param isHeld true while only reading calls may go out
 */
export function gatesOf(breakers: Breakers, now: number, isHeld = false): Gate[] {
  return QUEUES.map((queue) => {
    if (isHeld && !isReading(queue)) return { queue, phase: 'open', until: Number.POSITIVE_INFINITY, person: null };
    const operation = operationOf(queue);
    const needed: Operation[] = queue === BLIND_CREATE && isSilent(breakers) ? [operation, 'checkUser'] : [operation];
    const all = needed.map((one) => breakerOf(breakers, one));
    const phases = all.map((breaker) => phaseOf(breaker, now));
    const phase = (['open', 'half-open'] as const).find((one) => phases.includes(one)) ?? 'closed';
    const open = all.filter((_, place) => phases[place] === 'open');
    const until = Math.max(0, ...open.map(({ block }) => block?.until ?? 0));
    return { queue, phase, until, person: all.find(({ block }) => block)?.block?.person ?? null };
  });
}

/** How long a check that did not find the email allows a create. */
export const CHECK_FRESH_MS = 10 * 60_000;

/**
 * The next step from the known to the desired state of a person (spec, Sync rules 1 to 4). Pure: the same person and
 * context give the same step. `applyGrant` and `applyAnswer` then merge the outcome of its call.
 */
export function nextStep(person: Person, context: DecisionContext): Step {
  if (context.held && !person.wanted) return rest('deleting', LEGAL_HOLD);
  if (person.fault) return rest('failed', person.fault);
  return person.wanted ? presenceStep(person, context) : absenceStep(person, context);
}

function presenceStep(person: Person, context: DecisionContext): Step {
  if (person.review) return review(person.review);
  if (person.platformUserId !== null) return mirroredStep(person, context);
  if (person.attempt) return settleAttempt(person, context, 'pending', 'create-unknown');
  if (isRestoredUnknown(person, context)) return review('restored-unknown');
  if (person.email !== null && context.claim === 'taken') return review('email-taken');
  if (person.email !== null && context.claim === 'free') return { do: 'claim-email' };
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  if (person.email !== null && !isCheckFresh(person, context.now)) {
    return call(person, 'checkUser', 'pending', { subject: 'wanted' });
  }
  if (person.kind === 'provider') return call(person, 'createProvider', 'pending');
  // A lost create without an email needs review, so a check first shows whether the platform answers.
  if (person.email === null && isSilent(context.breakers)) {
    return call(person, 'checkUser', 'pending', { subject: 'any' });
  }
  return call(person, 'createClient', 'pending', { providerUserIds: wantedList(context).slice(0, 1) });
}

function mirroredStep(person: Person, context: DecisionContext): Step {
  // A delete without an answer is completed first, so that the person can safely be created again.
  if (person.attempt?.operation === 'deleteUser') return believedCall(person, context, 'deleteUser', 'pending');
  if (person.kind === 'provider') return rest('synced', null);
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  const wanted = wantedList(context);
  if (person.appliedProviders !== null && sameList(person.appliedProviders, wanted)) {
    if (!person.attempt) return rest('synced', null);
    // An earlier list without an answer may still replace this one, so this one is sent again once it cannot.
    if (context.now < person.attempt.lookUpAt) return rest('synced', null, person.attempt.lookUpAt);
  }
  return believedCall(person, context, 'setClientProviders', 'pending', { providerUserIds: wanted });
}

function absenceStep(person: Person, context: DecisionContext): Step {
  if (person.platformUserId !== null) {
    if (isFoundOnlyByEmail(person, context)) return review('delete-linked');
    if (context.hasSecondUser) return review('platform-user-taken');
    if (context.stillListed) return rest('deleting', 'clients-still-listed');
    return believedCall(person, context, 'deleteUser', 'deleting');
  }
  if (person.attempt) return settleAttempt(person, context, 'deleting', 'delete-unknown');
  return rest('deleted', null);
}

/**
 * True if a create of this client may have been sent after the backup that was restored. Without an email no lookup can
 * tell, so an operator decides.
 */
export function isRestoredUnknown(person: Person, { restored }: Pick<DecisionContext, 'restored'>): boolean {
  const { kind, wanted, email, platformUserId, attempt, checkedAbsentAt } = person;
  if (!restored || kind !== 'client' || !wanted || email !== null) return false;
  return platformUserId === null && !attempt && checkedAbsentAt === null;
}

/** True if the user may belong to someone else: found by its email, without a report that its role fits. */
export function isFoundOnlyByEmail(
  { platformUserId, origin }: Person,
  { role }: Pick<DecisionContext, 'role'>,
): boolean {
  return platformUserId !== null && origin === 'linked' && role !== 'fits';
}

/** A call whose 404 is believed only at a proven base URL. After a doubtful one, a check proves the URL first. */
function believedCall(
  person: Person,
  { breakers, base, now }: DecisionContext,
  operation: Operation,
  state: PersonState,
  more: Pick<CallStep, 'providerUserIds'> = {},
): CallStep {
  const isDoubtful = person.refusal?.kind === 'doubtful' && person.refusal.operation === operation;
  if (!isDoubtful || isProven(breakers, operation, base, now.getTime())) return call(person, operation, state, more);
  return call(person, 'checkUser', state, { subject: 'any' });
}

function settleAttempt(person: Person, context: DecisionContext, state: PersonState, code: Review): Step {
  const { attempt } = person;
  if (attempt && context.now < attempt.lookUpAt) return rest(state, 'outcome-unknown', attempt.lookUpAt);
  if (!attempt || attempt.email === null)
    return review(person.wanted && attempt?.callId === RESTORED_CALL ? 'restored-unknown' : code);
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
  // A rejected person stays failed while the call is retried.
  const shown = person.refusal?.kind === 'rejected' ? 'failed' : state;
  return { do: 'call', operation, state: shown, notBefore: person.retryAt, ...more };
}

function review(code: Review): RestStep {
  return rest('needs-review', code);
}

function rest(state: PersonState, code: string | null, until: Date | null = null): RestStep {
  return { do: 'rest', state, code, until };
}
