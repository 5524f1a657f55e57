import type { SessionAnswer, SessionDocument } from '../../platform/contract/session-answer.js';
import type { SessionState } from '../../platform/contract/wire-types.js';
import type { SessionFacts } from './session-facts.js';
import type { Freshness, SessionRow } from './session-row.js';
import type { InsightPart } from './session-seal.js';

/** Insights by the column that keeps them; undefined: the answer does not speak of it, null: there is none. */
export type FetchedInsights = Partial<Record<InsightPart, unknown>>;

/** Notes that an answer speaks of. */
export interface FetchedNotes {
  documents: readonly SessionDocument[];
  /** False: the platform has more, so that none is known to be missing there. */
  complete: boolean;
}

/**
 * The notes that an answer speaks of; one that leaves them out says nothing of them. While a session is processed or has
 * failed, null only says that none are ready; of one that is done it says, as an empty list does, that there are none.
 *
 * @returns undefined when the answer does not speak of notes
 */
export function fetchedNotes({ notes, notesIncomplete = false, state }: SessionAnswer): FetchedNotes | undefined {
  if (notes === undefined || (notes === null && state !== 'Done')) return undefined;
  return { documents: notes ?? [], complete: !notesIncomplete };
}

/** The insights that an answer speaks of, by the same rule as its notes. */
export function fetchedInsights(session: SessionAnswer): FetchedInsights {
  const spokenOf = <T>(part: T | null | undefined) => (part === null && session.state !== 'Done' ? undefined : part);
  return {
    transcript: spokenOf(session.transcript),
    topics: spokenOf(session.topics),
    namedEntities: spokenOf(session.namedEntities),
    analytics: spokenOf(session.analyticsSummary),
  };
}

/**
 * The facts after an answer: what it leaves out, since the spec calls each of these fields "not required", stays as it
 * is known, null clears.
 */
export function factsAfter(session: SessionAnswer, known: SessionFacts): SessionFacts {
  const after = <T>(said: T | null | undefined, before: T | null) => (said === undefined ? before : said);
  const wholeMs = (duration: number | null | undefined) => (duration == null ? duration : String(Math.round(duration)));
  return {
    date: after(session.date, known.date),
    sessionCreatedAt: after(session.sessionCreatedAt, known.sessionCreatedAt),
    sessionDurationMs: after(wholeMs(session.sessionDurationMs), known.sessionDurationMs),
    recordingDurationMs: after(wholeMs(session.recordingDurationMs), known.recordingDurationMs),
    error: after(errorAfter(session), known.error),
  };
}

/**
 * The error after an answer. It belongs to the state Error: there an answer that leaves it out says nothing of it.
 *
 * @returns undefined when the known one stays
 */
export function errorAfter({ state, error }: SessionAnswer): { code: string; message: string } | null | undefined {
  return state === 'Error' ? error : null;
}

/** What was read from the row before a fetch left. */
export interface FetchTicket {
  generation: number;
  answers: number;
}

/**
 * The ticket of a fetch that begins now; take it before the request leaves. While an update is on its way, a fetch can't
 * cover what it changes: one more is wanted when the update has ended.
 */
export function takeTicket(row: Freshness): FetchTicket {
  return { generation: row.wanted_generation - (row.update_until ? 1 : 0), answers: row.answers };
}

/**
 * Judges an answer when it arrives. Of two fetches that overlap it is unknown which one the platform answered with
 * the newer state, so only an answer whose fetch began after the last stored one is stored; the other is dropped.
 * Nothing is lost by that: whatever changed at the platform since the stored answer raises the wanted generation above
 * the fetched one, and so makes another fetch.
 *
 * @returns the row's freshness with the answer stored, or undefined when the answer must be dropped
 */
export function applyFetch(row: Freshness, ticket: FetchTicket): Freshness | undefined {
  if (ticket.answers !== row.answers) return undefined;
  const fetched = Math.max(row.fetched_generation, ticket.generation);
  return { ...row, fetched_generation: fetched, answers: row.answers + 1 };
}

/** True while something happened that no stored answer is known to cover. */
export function wantsFetch(row: Freshness): boolean {
  return row.wanted_generation > row.fetched_generation;
}

/**
 * Since when the newest event had waited that a fetch of a session answers; null when it answers none: its age, a reader
 * or an update made it due.
 *
 * @param claimed the row before the fetch left
 */
export function answeredEventAt({
  last_event_at: eventAt,
  fetched_at: fetchedAt,
}: Pick<SessionRow, 'last_event_at' | 'fetched_at'>): Date | null {
  return eventAt === null || (fetchedAt !== null && eventAt <= fetchedAt) ? null : eventAt;
}

/** Seconds from an event to the answer of the fetch that it led to. */
export function lagSeconds(eventAt: Date, now: Date): number {
  return Math.max(0, now.getTime() - eventAt.getTime()) / 1000;
}

/** Milliseconds between an event and the fetch that it asks for: a burst of events costs one fetch, not many. */
export const DEBOUNCE_MS = 500;

/** Milliseconds before the first look-up of a session of which no further event is to be expected. */
const SOON_MS = 3_000;

/** However old a session is, it is looked up this often while it has not ended, in milliseconds. */
const LONGEST_PAUSE_MS = 24 * 3_600_000;

/** What decides on the next look-up of a session, as a fetch left it. */
type LookUpSubject = Pick<SessionRow, 'event_state' | 'created_at' | 'last_event_at' | 'reopened_at'> & {
  state: SessionState;
};

/**
 * When a session is looked up although no event came; null when it has ended. An unfinished one is left alone
 * until it has the age of the policy, then looked up at its interval, and less and less often as it gets old. One that
 * had ended before and is Processing again is looked up soon: no event reports its end (spec, Meaning of event types:
 * COMPLETED does not fire on reprocessing).
 *
 * @param policy from which age and how often, in milliseconds
 */
export function nextLookUp(
  session: LookUpSubject,
  now: Date,
  policy: { afterMs: number; everyMs: number },
): Date | null {
  if (hasEnded(session.state)) return null;
  const { event_state: eventState, created_at: createdAt, reopened_at: reopenedAt } = session;
  const since = (moment: Date) => now.getTime() - moment.getTime();
  const later = (pauseMs: number) => now.getTime() + Math.min(LONGEST_PAUSE_MS, pauseMs);
  if (reopenedAt !== null || (eventState !== null && hasEnded(eventState))) {
    const lastEventAt = session.last_event_at ?? createdAt;
    const last = reopenedAt !== null && reopenedAt > lastEventAt ? reopenedAt : lastEventAt;
    return new Date(later(Math.max(SOON_MS, since(last) / 2)));
  }
  const byAge = later(Math.max(policy.everyMs, since(createdAt) / 4));
  return new Date(Math.max(createdAt.getTime() + policy.afterMs, byAge));
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

function hasEnded(state: string): boolean {
  return state === 'Done' || state === 'Error';
}
