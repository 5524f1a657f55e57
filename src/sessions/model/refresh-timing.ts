import type { SessionState } from '../../platform/contract/wire-types.js';

/** Milliseconds between an event and the fetch that it asks for: a burst of events costs one fetch, not many. */
export const SETTLE_MS = 500;

/** Milliseconds before the first look-up of a session of which no further event is to be expected. */
const SOON_MS = 3_000;

/** However old a session is, it is looked up this often while it has not ended, in milliseconds. */
const LONGEST_PAUSE_MS = 24 * 3_600_000;

/** From which age and how often something that should have ended by itself is looked up, in milliseconds. */
export interface LookUpPolicy {
  afterMs: number;
  everyMs: number;
}

/** A session as a fetch left it. */
export interface LookUpSubject {
  state: SessionState;
  /** From events alone. */
  eventState: SessionState | null;
  knownSince: Date;
  /** The last event. */
  lastEventAt: Date | null;
  /** Since when one that had ended is processed again. */
  reopenedAt: Date | null;
}

/**
 * When a session is looked up although nothing was heard of it; null when it has ended. An unfinished one is left alone
 * until it has the age of the policy, then looked up at its interval, and less and less often as it gets old. One that
 * had ended before and is Processing again is looked up soon: its end is told by no event (spec, Meaning of event types:
 * COMPLETED does not fire on reprocessing).
 */
export function nextLookUp(session: LookUpSubject, now: Date, policy: LookUpPolicy): Date | null {
  if (hasEnded(session.state)) return null;
  const since = (moment: Date) => now.getTime() - moment.getTime();
  if (session.reopenedAt !== null || (session.eventState !== null && hasEnded(session.eventState))) {
    const lastEventAt = session.lastEventAt ?? session.knownSince;
    const { reopenedAt } = session;
    return later(
      now,
      Math.max(SOON_MS, since(reopenedAt !== null && reopenedAt > lastEventAt ? reopenedAt : lastEventAt) / 2),
    );
  }
  return nextLookUpByAge(session.knownSince, now, policy);
}

/**
 * Since when a session that had ended is processed again; null when it is not, or never had ended.
 *
 * @param before the session as it was known
 * @param state what the platform answers now
 */
export function reopening(
  before: { state: string; fetchedAt: Date | null; reopenedAt: Date | null },
  state: SessionState,
  now: Date,
): Date | null {
  if (hasEnded(state)) return null;
  return before.fetchedAt !== null && hasEnded(before.state) ? now : before.reopenedAt;
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
