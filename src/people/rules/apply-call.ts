import { backoff } from '../../queue/work/backoff.js';
import type { CallStep } from './next-step.js';
import { type Call, isCreate, type Person, type Unsettled } from './person.js';

/** A call as it was sent. */
export interface SentCall extends Call, Pick<CallStep, 'subject' | 'providerUserIds'> {
  /** The fingerprint of the email that a check or a create sent; null: none, or one that says nothing about the person. */
  email: string | null;
}

/**
 * Records a call before it is sent. A create, a list or a deletion may take effect without an answer.
 *
 * @param settledAt when it can no longer take effect
 */
export function applyCall(person: Person, call: SentCall, settledAt: Date, now: Date): Person {
  const open = { id: call.id, operation: call.operation, version: call.version, lookUpAt: call.lookUpAt };
  const marked: Person = { ...person, call: open };
  const unsettled: Unsettled = { call: call.id, operation: call.operation, email: call.email, lookUpAt: settledAt };
  const earlier = person.unsettled?.operation === call.operation ? person.unsettled : null;
  switch (call.operation) {
    case 'checkUser':
      return marked;
    case 'createProvider':
    case 'createClient':
      return { ...marked, unsettled, checkedAbsentAt: null };
    case 'setClientProviders':
      // The answer to this list does not settle an earlier one, which may still take effect after it.
      return {
        ...marked,
        unsettled: earlier && now < earlier.lookUpAt ? { ...earlier, lookUpAt: settledAt } : unsettled,
        appliedProviders: null,
      };
    case 'deleteUser':
      return { ...marked, unsettled: earlier ?? notBefore(unsettled, person.unsettled), appliedProviders: null };
  }
}

/** A deletion that is refused leaves the list unsettled (`settle`), at least as long as the earlier one that it replaced. */
function notBefore(unsettled: Unsettled, earlier: Unsettled | null): Unsettled {
  return earlier && earlier.lookUpAt > unsettled.lookUpAt ? { ...unsettled, lookUpAt: earlier.lookUpAt } : unsettled;
}

/** Closes a call whose process died, or could not store the answer. What the call may have done stays unsettled. */
export function abandon(person: Person, now: Date): Person {
  const failures = person.failures + 1;
  const lost = person.call && isCreate(person.call) ? { fault: null } : {};
  return { ...person, ...lost, call: null, failures, dueAt: backoff(failures, now) };
}
