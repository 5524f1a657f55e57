import { isFoundByEmailAlone } from './next-step.js';
import type { Person, PersonState } from './person.js';

/** What a human being may say of a person that the service could not settle. */
export type ResolveAction = 'link' | 'create' | 'retry' | 'ignore' | 'delete';

export const RESOLVE_ACTIONS: ResolveAction[] = ['link', 'create', 'retry', 'ignore', 'delete'];

/** Why an action can't be taken now: nothing needs it, the service may still find out itself, or it made two of one. */
export type ResolveRefusal = 'nothing-to-resolve' | 'call-under-way' | 'has-platform-user';

/**
 * Whether a person may be resolved by this action: only one that needs somebody, so that a good mapping is never
 * dropped and nobody is made twice: whoever has a user is made anew only when the platform has lost it. Linking somebody whom the service has not begun with is welcome, too.
 */
export function resolveRefusal(action: ResolveAction, state: PersonState, person: Person): ResolveRefusal | null {
  if (action === 'delete') return !person.wanted && isFoundByEmailAlone(person) ? null : 'nothing-to-resolve';
  const isLost = person.review === 'platform-user-missing';
  if (action === 'create' && person.platformUserId !== null && !isLost) {
    return state === 'needs-review' || state === 'failed' ? 'has-platform-user' : 'nothing-to-resolve';
  }
  if (action === 'retry' || state === 'needs-review' || state === 'failed') return null;
  if (person.attempt) return 'call-under-way';
  return action === 'link' && person.wanted && person.platformUserId === null ? null : 'nothing-to-resolve';
}
