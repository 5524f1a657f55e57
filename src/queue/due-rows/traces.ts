import { traceparentOf } from '../../tracing/trace.js';

/** Traces that a row remembers; of more the oldest are forgotten. */
const MOST = 8;

/** For a parameter of type `text[]`: the trace of what runs now. */
export const tracesNow = (): string[] => [traceparentOf() ?? []].flat();

/**
 * Assignment to a row that is made due once more.
 *
 * @param table whose row it is
 * @param now parameter or column: `tracesNow()`
 */
export const joinTraces = (table: string, now: string): string =>
  `traceparents = (${now}::text[] || ${table}.traceparents)[1:${MOST}]`;

/**
 * Assignment after work on a row: what made it due meanwhile stays, for the work that follows.
 *
 * @param newest parameter: the newest trace that the row had when it was claimed
 */
export const leaveTraces = (newest: string): string =>
  `traceparents = traceparents[:coalesce(array_position(traceparents, ${newest}::text), ${MOST + 1}) - 1]`;
