import { factsOf } from '../../platform/contract/operations.js';
import {
  type DecisionContext,
  isCreate,
  type Operation,
  type Person,
  type PersonState,
  RESTORED_CALL,
} from './person.js';
import { LEGAL_HOLD, type Review } from './person-codes.js';

/** The next call to the platform. */
export interface CallStep {
  do: 'call';
  operation: Operation;
  state: PersonState;
  /** Not before this time. */
  dueAt: Date;
  /**
   * For a check: the desired email, the email that an unsettled create sent, or any known email, which only shows
   * whether the platform answers.
   */
  subject?: 'wanted' | 'attempted' | 'any';
  /** Platform user ids: only the primary for a client's create, all of them for its list. */
  providerUserIds?: string[];
}

/** No call until something changes. */
export interface RestStep {
  do: 'rest';
  state: PersonState;
  code: string | null;
}

export type Step = CallStep | RestStep;

/** True if an operation is also called under a hold, because it only reads. */
export const isReading = (operation: Operation): boolean => factsOf(operation).reads;

/** How long a check that did not find the email allows a create. */
const CHECK_FRESH_MS = 10 * 60_000;

/**
 * The next step from the known to the desired state of a person (spec, Sync rules 1 to 4). Pure: the same person and
 * context give the same step. A call in flight goes on meanwhile; `applyCall` and `applyAnswer` merge its outcome.
 */
export function nextStep(person: Person, context: DecisionContext): Step {
  if (context.held && !person.wanted) return rest('deleting', LEGAL_HOLD);
  // A failed person is tried once more if a time is set, and shown as failed meanwhile.
  if (person.fault && person.dueAt === null) return rest('failed', person.fault);
  const step = person.wanted ? presenceStep(person, context) : absenceStep(person, context);
  return person.fault && step.do === 'call' ? { ...step, state: 'failed' } : step;
}

/** When a person is to be called, or looked at again: a call in flight may end without an answer. Null: not at all. */
export function dueAtOf({ call }: Pick<Person, 'call'>, step: Step): Date | null {
  if (call) return call.lookUpAt;
  return step.do === 'call' ? step.dueAt : null;
}

function presenceStep(person: Person, context: DecisionContext): Step {
  if (person.review && !isTakenBack(person)) return review(person.review);
  if (person.platformUserId !== null) return mirroredStep(person, context);
  if (person.unsettled) return settleStep(person, 'pending', 'create-unknown');
  if (person.email !== null && context.claim === 'taken') return review('email-taken');
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  if (person.email !== null && !isCheckFresh(person, context.now)) {
    return call(person, 'checkUser', 'pending', { subject: 'wanted' });
  }
  if (person.kind === 'provider') return call(person, 'createProvider', 'pending');
  return call(person, 'createClient', 'pending', { providerUserIds: wantedList(context).slice(0, 1) });
}

/** True for a review of a deletion that the EHR took back, unless an earlier deletion may still take effect. */
const isTakenBack = ({ review, unsettled }: Person): boolean =>
  review === 'delete-unconfirmed' && unsettled?.operation !== 'deleteUser';

function mirroredStep(person: Person, context: DecisionContext): Step {
  const { unsettled, appliedProviders } = person;
  // A delete without an answer is completed first, so that the person can safely be created again.
  if (unsettled?.operation === 'deleteUser') return believedCall(person, 'deleteUser', 'pending');
  if (mayMakeSecond(person)) return settleStep(person, 'pending', 'create-unknown');
  if (person.kind === 'provider') return rest('synced', null);
  if (awaitsProvider(person, context)) return rest('waiting', 'provider-not-mirrored');
  const wanted = wantedList(context);
  const list = { providerUserIds: wanted };
  if (appliedProviders === null || !sameList(appliedProviders, wanted)) {
    return believedCall(person, 'setClientProviders', 'pending', list);
  }
  if (!unsettled) return rest('synced', null);
  // An earlier list without an answer may still replace this one, so this one is sent again once it cannot.
  return notBefore(call(person, 'setClientProviders', 'synced', list), unsettled.lookUpAt);
}

/** A create without an answer, beside the user that another answer or an event has named, can be looked up. */
const mayMakeSecond = ({ unsettled }: Person): boolean =>
  unsettled !== null && isCreate(unsettled) && unsettled.email !== null;

function absenceStep(person: Person, context: DecisionContext): Step {
  if (person.review === 'delete-unconfirmed') return review(person.review);
  if (person.platformUserId !== null) {
    if (mayMakeSecond(person)) return settleStep(person, 'deleting', 'delete-unknown');
    if (isFoundOnlyByEmail(person)) return review('delete-linked');
    if (context.stillListed) return rest('deleting', 'clients-still-listed');
    return believedCall(person, 'deleteUser', 'deleting');
  }
  if (person.unsettled) return settleStep(person, 'deleting', 'delete-unknown');
  return rest('deleted', null);
}

/** True if the user may belong to someone else: found by its email, without a report that its role fits. */
export function isFoundOnlyByEmail({ platformUserId, origin, role }: Person): boolean {
  return platformUserId !== null && origin === 'linked' && role !== 'fits';
}

/** A call whose 404 may come from another server. After one, a check shows whether the platform answers at this URL. */
function believedCall(
  person: Person,
  operation: Operation,
  state: PersonState,
  more: Pick<CallStep, 'providerUserIds'> = {},
): CallStep {
  const isDoubtful = person.refused?.operation === operation && person.refused.code === 404;
  return isDoubtful ? call(person, 'checkUser', state, { subject: 'any' }) : call(person, operation, state, more);
}

/** Finds out whether an unsettled create made a user. Without an email, only an event or an operator can. */
function settleStep(person: Person, state: PersonState, code: Review): Step {
  const { unsettled } = person;
  if (unsettled && person.call?.id === unsettled.call) return call(person, unsettled.operation, state);
  if (!unsettled || unsettled.email === null) {
    return review(person.wanted && unsettled?.call === RESTORED_CALL ? 'restored-unknown' : code);
  }
  return notBefore(call(person, 'checkUser', state, { subject: 'attempted' }), unsettled.lookUpAt);
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
  // At the same place for each of its calls, because otherwise the checks of a long import would all come first.
  return { do: 'call', operation, state, dueAt: person.dueAt ?? person.wantedAt, ...more };
}

function notBefore(step: CallStep, time: Date): CallStep {
  return time > step.dueAt ? { ...step, dueAt: time } : step;
}

function review(code: Review): RestStep {
  return rest('needs-review', code);
}

function rest(state: PersonState, code: string | null): RestStep {
  return { do: 'rest', state, code };
}
