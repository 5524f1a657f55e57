import type { SessionAnswer, SessionDocument } from '../../platform/contract/session-answer.js';
import { announcedNotes, missingNotes, NOT_FOUND_MS, RECHECK_MS } from './next-lookup.js';
import type { SessionFacts } from './session-facts.js';
import { isOwnState, type SessionRow, shownAppointment } from './session-row.js';
import type { InsightPart } from './session-seal.js';

/** Insights by column; undefined: not in the answer, null: none. */
export type FetchedInsights = Partial<Record<InsightPart, unknown>>;

/** The notes in an answer. */
export interface FetchedNotes {
  documents: readonly SessionDocument[];
  /** False if the platform may have more documents, so that absence from the list proves nothing. */
  complete: boolean;
}

/** A fetch, with what its row said when it was sent. */
export interface Fetch {
  no: number;
  changes: number;
  at: Date;
}

/** What an answer changed beside the row. */
export interface Stored {
  notesChanged: boolean;
  newRevisions: number;
  now: Date;
}

/** True if a later call about a session began after this fetch, so that its answer is stored instead. */
export const isOutdated = (row: SessionRow, fetch: Fetch): boolean => row.callNo !== fetch.no;

/**
 * Merges an answer that is not outdated into its session. Pure.
 *
 * | field                 | after the answer                                                                       |
 * |-----------------------|----------------------------------------------------------------------------------------|
 * | shown fields          | the answer's; what it lacks stays as it was known                                      |
 * | `everClientUserIds`   | also the answer's                                                                      |
 * | `fetchedChanges`      | the changes before the fetch: what came later leads to another one                     |
 * | `notesFound`          | plus the new versions of notes                                                         |
 * | `rechecks`            | plus one while announced notes are missing; after the fifth they are no longer awaited |
 * | `updateUntil`         | null if the fetch began when no update could take effect any more                      |
 * | faults                | none                                                                                   |
 *
 * @returns the fields that change
 */
export function applyFetch(
  row: SessionRow,
  fetch: Fetch,
  answer: SessionAnswer,
  { notesChanged, newRevisions, now }: Stored,
): Partial<SessionRow> {
  const after = { ...row, ...shownBy(row, answer), notesFound: row.notesFound + newRevisions };
  const isMissing = missingNotes(after) > 0;
  const isAwaited = isMissing && row.rechecks < RECHECK_MS.length;
  return {
    ...shownBy(row, answer),
    everClientUserIds: [...new Set([...row.everClientUserIds, ...(answer.clientUserIds ?? [])])],
    notesRevision: row.notesRevision + (notesChanged ? 1 : 0),
    incomplete: [...answer.incomplete],
    notesFound: isMissing && !isAwaited ? announcedNotes(after) : after.notesFound,
    rechecks: isAwaited ? row.rechecks + 1 : 0,
    fetchedChanges: Math.max(row.fetchedChanges, fetch.changes),
    fetchedAt: now,
    updateUntil: row.updateUntil !== null && row.updateUntil <= fetch.at ? null : row.updateUntil,
    urgent: true,
    ...NO_FAULT,
  };
}

/** The fields of a row whose last call did not fail. */
export const NO_FAULT = {
  ...{ fault: null, failures: 0, refusedAt: null, refusedStatus: null, retryAt: null, notFoundAt: null },
};

/** The shown fields of a session after an answer. A field that the answer lacks, or whose value is unreadable, stays. */
export function shownBy(row: Omit<SessionRow, 'request'>, answer: SessionAnswer) {
  const appointment = shownAppointment(answer.partnerAppointmentId ?? row.eventAppointmentId);
  return {
    // A platform state named like one of this service would be mistaken for it.
    state: isOwnState(answer.state) ? row.state : answer.state,
    stateFrom: 'platform',
    providerUserId: answer.providerUserId ?? row.providerUserId,
    clientUserIds: answer.clientUserIds ?? row.clientUserIds,
    noteTemplateIds: answer.noteTemplateIds ?? row.noteTemplateIds,
    partnerAppointmentId: appointment ?? row.partnerAppointmentId,
  };
}

/** Lookups in a row (about an hour) after which a session that was never found counts as gone: a new one may not be found at once. */
const LOOKUPS_UNTIL_GONE = 10;

/** What a row remembers of a failed call; it is called again at `retryAt`. */
export interface Failure extends Partial<Pick<SessionRow, 'refusedAt' | 'refusedStatus' | 'notFoundAt'>> {
  fault: string;
  failures: number;
  retryAt: Date;
}

/** A fetch that failed. A session that the platform does not find is given up after seven days. @returns the fields that change */
export function applyFailure(row: SessionRow, fetch: Fetch, failure: Failure, now: Date): Partial<SessionRow> {
  const { notFoundAt } = failure;
  if (!notFoundAt) return failure;
  const after = { ...row, ...failure, notFoundAt };
  const isGivenUp = now.getTime() - notFoundAt.getTime() >= NOT_FOUND_MS;
  return {
    ...failure,
    fetchedChanges: Math.max(row.fetchedChanges, fetch.changes),
    // An event during the fetch says that it may exist by now.
    ...((isGivenUp || row.changes > fetch.changes) && { retryAt: null }),
    urgent: true,
    ...(isGone(after) && !isGone(row) && { updatedAt: now }),
  };
}

/** True if the platform no longer has a session; its notes are kept. */
export function isGone({
  notFoundAt,
  fetchedAt,
  failures,
}: Pick<SessionRow, 'notFoundAt' | 'fetchedAt' | 'failures'>): boolean {
  return notFoundAt !== null && (fetchedAt !== null || failures > LOOKUPS_UNTIL_GONE);
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
 * null clears it. The error is null in any state but Error.
 */
export function factsAfter(session: SessionAnswer, known: SessionFacts): SessionFacts {
  const after = <T>(answered: T | null | undefined, before: T | null) => (answered === undefined ? before : answered);
  const wholeMs = (duration: number | null | undefined) => (duration == null ? duration : String(Math.round(duration)));
  return {
    date: after(session.date, known.date),
    sessionCreatedAt: after(session.sessionCreatedAt, known.sessionCreatedAt),
    sessionDurationMs: after(wholeMs(session.sessionDurationMs), known.sessionDurationMs),
    recordingDurationMs: after(wholeMs(session.recordingDurationMs), known.recordingDurationMs),
    error: after(session.state === 'Error' ? session.error : null, known.error),
  };
}
