import type { SessionAnswer, SessionDocument } from '../../platform/contract/session-answer.js';
import type { SessionFacts } from './session-facts.js';
import type { Freshness, SessionRow } from './session-row.js';
import type { InsightPart } from './session-seal.js';

/** Insights by column; undefined: not in the answer, null: none. */
export type FetchedInsights = Partial<Record<InsightPart, unknown>>;

/** The notes in an answer. */
export interface FetchedNotes {
  documents: readonly SessionDocument[];
  /** False if the platform may have more documents, so that absence from the list proves nothing. */
  complete: boolean;
}

/**
 * The notes in an answer. Only the list of a Done session is complete. Before that, and after a failure, documents may be
 * missing because they are not ready.
 *
 * @returns undefined if the answer says nothing about notes
 */
export function fetchedNotes({ notes, notesIncomplete, state }: SessionAnswer): FetchedNotes | undefined {
  if (notes === undefined || (notes === null && state !== 'Done')) return undefined;
  return { documents: notes ?? [], complete: state === 'Done' && !notesIncomplete };
}

/** The insights in an answer, by the same rule as its notes. */
export function fetchedInsights(session: SessionAnswer): FetchedInsights {
  const ifKnown = <T>(part: T | null | undefined) => (part === null && session.state !== 'Done' ? undefined : part);
  return {
    transcript: ifKnown(session.transcript),
    topics: ifKnown(session.topics),
    namedEntities: ifKnown(session.namedEntities),
    analytics: ifKnown(session.analyticsSummary),
  };
}

/**
 * The facts after an answer. An omitted field keeps its value, because the spec calls each of these fields "not required";
 * null clears it.
 */
export function factsAfter(session: SessionAnswer, known: SessionFacts): SessionFacts {
  const after = <T>(answered: T | null | undefined, before: T | null) => (answered === undefined ? before : answered);
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
 * The error after an answer. It is null in any state but Error.
 *
 * @returns undefined if the known error stays
 */
export function errorAfter({ state, error }: SessionAnswer): { code: string; message: string } | null | undefined {
  return state === 'Error' ? error : null;
}

/** The row's counters before a fetch is sent. */
export interface FetchTicket {
  generation: number;
  answers: number;
}

/**
 * The ticket of a fetch, to be taken before it is sent. A fetch during an update may miss its effect, so it leaves one
 * generation open for a fetch after the update.
 */
export function takeTicket(row: Freshness): FetchTicket {
  return { generation: row.wantedGeneration - (row.updateUntil ? 1 : 0), answers: row.answers };
}

/**
 * Decides whether an answer is stored. Of two overlapping fetches it is unknown which answer is newer, so an answer is
 * stored only if its fetch started after the last stored answer, and otherwise dropped. Nothing is lost: every change on
 * the platform since the stored answer raises the wanted generation above the fetched one, so another fetch follows.
 *
 * @returns the row's freshness with the answer stored, or undefined if the answer must be dropped
 */
export function applyFetch(row: Freshness, ticket: FetchTicket): Freshness | undefined {
  if (ticket.answers !== row.answers) return undefined;
  const fetched = Math.max(row.fetchedGeneration, ticket.generation);
  return { wantedGeneration: row.wantedGeneration, fetchedGeneration: fetched, answers: row.answers + 1 };
}

/** True while an event, a request or an update is not covered by a stored answer. */
export function wantsFetch(row: Freshness): boolean {
  return row.wantedGeneration > row.fetchedGeneration;
}

/**
 * The arrival of the newest event that a fetch answers; null if age, a reader or an update made the session due.
 *
 * @param claimed the row before the fetch was sent
 */
export function answeredEventAt({
  lastEventAt,
  fetchedAt,
}: Pick<SessionRow, 'lastEventAt' | 'fetchedAt'>): Date | null {
  return lastEventAt === null || (fetchedAt !== null && lastEventAt <= fetchedAt) ? null : lastEventAt;
}

/** Seconds from an event to the answer of the fetch that it led to. */
export function lagSeconds(eventAt: Date, now: Date): number {
  return Math.max(0, now.getTime() - eventAt.getTime()) / 1000;
}

/** Maximum delay of a fetch after an event, so that a burst of events costs one more fetch than its first event. */
export const DEBOUNCE_MS = 300;

/** Waits before the next fetch while no fetch has shown the awaited notes: replicas of the platform may lag. */
const RECHECK_MS = [2_000, 10_000, 60_000, 10 * 60_000, 60 * 60_000];

/**
 * The awaited notes after a fetch.
 *
 * @param newRevisions revisions of documents that this fetch stored
 * @returns `recheckAt`: when the session is fetched again for them; null if they are no longer awaited
 */
export function awaitedAfterFetch(
  row: Pick<SessionRow, 'notesAwaited' | 'rechecks'>,
  newRevisions: number,
  now: Date,
): Pick<SessionRow, 'notesAwaited' | 'rechecks'> & { recheckAt: Date | null } {
  const notesAwaited = Math.max(0, row.notesAwaited - newRevisions);
  const waitMs = RECHECK_MS[row.rechecks];
  if (notesAwaited === 0 || waitMs === undefined) return { notesAwaited: 0, rechecks: 0, recheckAt: null };
  return { notesAwaited, rechecks: row.rechecks + 1, recheckAt: new Date(now.getTime() + waitMs) };
}

/** Minimum delay before the lookup of a session without further events. */
const SOON_MS = 3_000;

/** Maximum interval between lookups of a session that has not ended. */
const MAX_INTERVAL_MS = 24 * 3_600_000;

/** The fields of a fetched session that determine its next lookup. */
type LookupSubject = Pick<SessionRow, 'eventState' | 'createdAt' | 'lastEventAt' | 'reopenedAt'> & {
  state: string;
};

/**
 * The time of the next lookup of a session without an event; null if the session has ended. The first lookup is at the
 * policy's age, the next ones at its interval, which grows with the age. A session that is Processing again after its
 * end is looked up soon, because no event reports its end (spec, Meaning of event types: COMPLETED does not fire on
 * reprocessing).
 *
 * @param policy minimum age and interval, in milliseconds
 */
export function nextLookup(
  session: LookupSubject,
  now: Date,
  policy: { afterMs: number; everyMs: number },
): Date | null {
  if (hasEnded(session.state)) return null;
  const { eventState, createdAt, reopenedAt } = session;
  const since = (moment: Date) => now.getTime() - moment.getTime();
  const later = (intervalMs: number) => now.getTime() + Math.min(MAX_INTERVAL_MS, intervalMs);
  if (reopenedAt !== null || (eventState !== null && hasEnded(eventState))) {
    const lastEventAt = session.lastEventAt ?? createdAt;
    const last = reopenedAt !== null && reopenedAt > lastEventAt ? reopenedAt : lastEventAt;
    return new Date(later(Math.max(SOON_MS, since(last) / 2)));
  }
  const byAge = later(Math.max(policy.everyMs, since(createdAt) / 4));
  return new Date(Math.max(createdAt.getTime() + policy.afterMs, byAge));
}

/**
 * Since when a session is processed again after its end; null if it is not.
 *
 * @param before the row before the answer
 * @param state the platform's answer
 */
export function reopening(
  before: Pick<SessionRow, 'state' | 'fetchedAt' | 'reopenedAt'>,
  state: string,
  now: Date,
): Date | null {
  if (hasEnded(state)) return null;
  return before.fetchedAt !== null && hasEnded(before.state) ? now : before.reopenedAt;
}

function hasEnded(state: string): boolean {
  return state === 'Done' || state === 'Error';
}
