/** SQL of the session whose newest event has waited longest for a fetch; found by a partial index. */
export const LONGEST_AWAITED = `(SELECT last_event_at, fault FROM sessions
  WHERE due_at IS NOT NULL AND changes > fetched_changes AND (fetched_at IS NULL OR last_event_at > fetched_at)
  ORDER BY last_event_at LIMIT 1)`;
