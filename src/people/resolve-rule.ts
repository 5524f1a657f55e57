import type { Person, PersonState } from './person.js';

/** What a human being may say of a person that the service could not settle. */
export type ResolveAction = 'link' | 'create' | 'retry' | 'ignore';

/** Why an action can't be taken now: nothing needs it, or the service may still find out itself. */
export type ResolveRefusal = 'nothing-to-resolve' | 'call-under-way';

/**
 * Whether a person may be resolved by this action: only one that needs somebody, so that a good mapping is never
 * dropped and nobody is made twice. Linking somebody whom the service has not begun with is welcome, too.
 */
export function resolveRefusal(action: ResolveAction, state: PersonState, person: Person): ResolveRefusal | null {
  if (action === 'retry' || state === 'needs-review' || state === 'failed') return null;
  if (person.attempt) return 'call-under-way';
  return action === 'link' && person.wanted && person.platformUserId === null ? null : 'nothing-to-resolve';
}
