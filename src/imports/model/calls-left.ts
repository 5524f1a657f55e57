import type { Operation, PersonKind } from '../../people/rules/person.js';

/** A number of calls to the platform: at least and at most. */
export type Calls = Record<'min' | 'max', number>;

/** People of one kind whose next call is the same. */
export interface DuePeople {
  kind: PersonKind;
  /** Null: they wait for someone else first. */
  step: Operation | null;
  people: number;
}

/**
 * The calls that a person still needs, without repetitions. A check leads to a create or, if the platform has the user, to a
 * link; a client's list is one more call if the user exists or the list has several providers.
 *
 * | next call | provider | client |
 * |---|---|---|
 * | `checkUser` | 1 to 2 | 2 to 3 |
 * | `createProvider`, `createClient` | 1 | 1 to 2 |
 * | `setClientProviders`, `deleteUser` | 1 | 1 |
 * | none yet | 1 to 2 | 1 to 3 |
 */
function callsOf({ kind, step }: DuePeople): Calls {
  const isClient = kind === 'client';
  if (step === null) return { min: 1, max: isClient ? 3 : 2 };
  if (step === 'checkUser') return isClient ? { min: 2, max: 3 } : { min: 1, max: 2 };
  return { min: 1, max: step === 'createClient' ? 2 : 1 };
}

/** The calls that some people still need. */
export function callsLeft(due: readonly DuePeople[]): Calls {
  const sum = (bound: keyof Calls) => due.reduce((calls, one) => calls + one.people * callsOf(one)[bound], 0);
  return { min: sum('min'), max: sum('max') };
}

/**
 * The calls that the rows of an import still need: those that were not applied as planned, the others by their people, but
 * not more than was planned, because a plan knows more, such as the number of a client's providers.
 *
 * @param unapplied as planned, of the rows that were not applied
 * @param applied as planned, of the pending rows that were applied
 * @param due the people of these
 */
export function callsOfImport(unapplied: Calls, applied: Calls, due: readonly DuePeople[]): Calls {
  const people = due.reduce((sum, one) => sum + one.people, 0);
  const left = callsLeft(due);
  const total = (bound: keyof Calls) => unapplied[bound] + Math.max(people, Math.min(left[bound], applied[bound]));
  return { min: total('min'), max: total('max') };
}
