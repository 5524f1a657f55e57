import type { SessionAnswer, SessionDocument } from '../../platform/contract/wire-types.js';
import type { InsightPart } from './session-seal.js';

/** Insights by the column that keeps them; undefined: the answer does not speak of it, null: there is none. */
export type FetchedInsights = Partial<Record<InsightPart, unknown>>;

/** Notes that an answer speaks of. */
export interface FetchedNotes {
  documents: readonly SessionDocument[];
  /** False: the platform has more, so that none is known to be missing there. */
  complete: boolean;
}

/** What a session's row keeps of an answer as it came; the spec calls each of these fields "not required". */
export interface OptionalFacts {
  date: string | null;
  sessionCreatedAt: string | null;
  sessionDurationMs: number | null;
  recordingDurationMs: number | null;
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

/** The optional facts after an answer: what it leaves out stays as it is known, null clears. */
export function factsAfter(session: SessionAnswer, known: OptionalFacts): OptionalFacts {
  const after = <T>(said: T | null | undefined, before: T | null) => (said === undefined ? before : said);
  return {
    date: after(session.date, known.date),
    sessionCreatedAt: after(session.sessionCreatedAt, known.sessionCreatedAt),
    sessionDurationMs: wholeMs(after(session.sessionDurationMs, known.sessionDurationMs)),
    recordingDurationMs: wholeMs(after(session.recordingDurationMs, known.recordingDurationMs)),
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

function wholeMs(duration: number | null): number | null {
  return duration === null ? null : Math.round(duration);
}
