/** What decides whether an answer of the platform may be stored in a session's row. */
export interface Freshness {
  /** Raised by every event and every request for a refresh. */
  wanted_generation: number;
  /** The wanted generation that the newest stored answer is known to cover. */
  fetched_generation: number;
  /** How many answers were stored so far. */
  answers: number;
  /**
   * Until when an update that is on its way may take effect at the platform; it raised the wanted generation by one
   * before it left. Null: none is on its way.
   */
  update_until?: Date | null;
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
  return {
    ...row,
    fetched_generation: Math.max(row.fetched_generation, ticket.generation),
    answers: row.answers + 1,
  };
}

/** True while something happened that no stored answer is known to cover. */
export function wantsFetch(row: Freshness): boolean {
  return row.wanted_generation > row.fetched_generation;
}
