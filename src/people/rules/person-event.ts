import type { FeedType } from '../../words/feed-types.js';
import type { CallStep, RestStep } from './next-step.js';
import type { Person, PersonState } from './person.js';

/** The states that the feed announces, with the types of their events. */
const ANNOUNCED: Partial<Record<PersonState, FeedType>> = {
  synced: 'person.synced',
  'needs-review': 'person.needs-review',
  deleted: 'person.deleted',
};

/**
 * The event of the feed that a decision causes: a new state, or a new fault. Pure.
 *
 * @param before its state and fault until now
 * @returns undefined if there is nothing to announce
 */
export function eventOf(
  before: { state: PersonState; fault: Person['fault'] },
  person: Person,
  step: CallStep | RestStep,
): { type: FeedType; code: string | null } | undefined {
  const { fault } = person;
  if (step.state === 'failed' && fault && fault !== before.fault && fault !== 'ignored')
    return { type: 'person.failed', code: fault };
  const type = before.state === step.state ? undefined : ANNOUNCED[step.state];
  return type && { type, code: step.do === 'rest' ? step.code : null };
}
