import type { SessionState } from '../../platform/contract/wire-types.js';
import type { SessionRow } from './session-row.js';

/** Milliseconds between an event and the fetch that it asks for: a burst of events costs one fetch, not many. */
export const DEBOUNCE_MS = 500;

/** Milliseconds before the first look-up of a session of which no further event is to be expected. */
const SOON_MS = 3_000;

/** However old a session is, it is looked up this often while it has not ended, in milliseconds. */
const LONGEST_PAUSE_MS = 24 * 3_600_000;

/** From which age and how often something that should have ended by itself is looked up, in milliseconds. */
interface LookUpPolicy {
  afterMs: number;
  everyMs: number;
}

/** What decides on the next look-up of a session, as a fetch left it. */
export type LookUpSubject = Pick<SessionRow, 'event_state' | 'created_at' | 'last_event_at' | 'reopened_at'> & {
  state: SessionState;
};

/**
 * When a session is looked up although no event came; null when it has ended. An unfinished one is left alone
 * until it has the age of the policy, then looked up at its interval, and less and less often as it gets old. One that
 * had ended before and is Processing again is looked up soon: no event reports its end (spec, Meaning of event types:
 * COMPLETED does not fire on reprocessing).
 */
export function nextLookUp(session: LookUpSubject, now: Date, policy: LookUpPolicy): Date | null {
  if (hasEnded(session.state)) return null;
  const since = (moment: Date) => now.getTime() - moment.getTime();
  const { event_state: eventState, created_at: createdAt, reopened_at: reopenedAt } = session;
  if (reopenedAt !== null || (eventState !== null && hasEnded(eventState))) {
    const lastEventAt = session.last_event_at ?? createdAt;
    const last = reopenedAt !== null && reopenedAt > lastEventAt ? reopenedAt : lastEventAt;
    return later(now, Math.max(SOON_MS, since(last) / 2));
  }
  return nextLookUpByAge(createdAt, now, policy);
}

/**
 * Since when a session that had ended is processed again; null when it is not, or never had ended.
 *
 * @param before the session as it was known
 * @param state what the platform answers now
 */
export function reopening(
  before: Pick<SessionRow, 'state' | 'fetched_at' | 'reopened_at'>,
  state: SessionState,
  now: Date,
): Date | null {
  if (hasEnded(state)) return null;
  return before.fetched_at !== null && hasEnded(before.state) ? now : before.reopened_at;
}

/** When something that has not ended is looked up: from the age of the policy on, at its interval, ever more rarely. */
function nextLookUpByAge(knownSince: Date, now: Date, policy: LookUpPolicy): Date {
  const pause = Math.max(policy.everyMs, (now.getTime() - knownSince.getTime()) / 4);
  return new Date(Math.max(knownSince.getTime() + policy.afterMs, later(now, pause).getTime()));
}

function hasEnded(state: string): boolean {
  return state === 'Done' || state === 'Error';
}

function later(now: Date, pauseMs: number): Date {
  return new Date(now.getTime() + Math.min(LONGEST_PAUSE_MS, pauseMs));
}
