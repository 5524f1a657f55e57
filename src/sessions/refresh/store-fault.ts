import type { FetchFault } from './fetch-loop.js';

/** What a failed fetch leaves on its row, whichever table it is of: why, and when the next may leave. */
export function storeFault({ code, failure, waitMs }: FetchFault): { set: string; values: readonly unknown[] } {
  return {
    set: `fault = $1, failures = failures + $2,
      refused_at = CASE WHEN $1 = 'platform-unauthorized' THEN clock_timestamp() ELSE refused_at END,
      due_at = clock_timestamp() + $3 * interval '1 millisecond'`,
    values: [code, failure ? 1 : 0, waitMs],
  };
}
