import type { Session, SessionDocument } from '../platform/wire-types.js';
import type { InsightPart } from './session-seal.js';

/** Insights by the column that keeps them; undefined: the answer does not speak of it, null: there is none. */
export type FetchedInsights = Partial<Record<InsightPart, unknown>>;

/**
 * The notes that an answer speaks of. While a session is processed or has failed, an answer without notes only says
 * that none are ready; of one that is done it says that there are none.
 *
 * @returns undefined when the answer does not speak of notes
 */
export function fetchedNotes(session: Session): SessionDocument[] | undefined {
  return session.notes ?? (session.state === 'Done' ? [] : undefined);
}

/** The insights that an answer speaks of, by the same rule as its notes. */
export function fetchedInsights(session: Session): FetchedInsights {
  const missing = session.state === 'Done' ? null : undefined;
  return {
    transcript: session.transcript ?? missing,
    topics: session.topics ?? missing,
    named_entities: session.namedEntities ?? missing,
    analytics: session.analyticsSummary ?? missing,
  };
}
