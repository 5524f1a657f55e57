import { traceparentOf } from '../tracing/trace.js';

/** Maximum traces per row. The oldest are dropped. */
const MAX_TRACES = 8;

/** The current trace, for a parameter of type `text[]`. */
export const tracesNow = (): string[] => [traceparentOf() ?? []].flat();

/**
 * SQL assignment for a row that becomes due again.
 *
 * @param table name or alias of the row's table
 * @param now parameter or column with `tracesNow()`
 */
export const joinTraces = (table: string, now: string): string =>
  `traceparents = (${now}::text[] || ${table}.traceparents)[1:${MAX_TRACES}]`;

/**
 * SQL assignment after work on a row. Keeps the traces that made the row due during the work.
 *
 * @param newest parameter with the row's newest trace at the claim
 */
export const leaveTraces = (newest: string): string =>
  `traceparents = traceparents[:coalesce(array_position(traceparents, ${newest}::text), ${MAX_TRACES + 1}) - 1]`;
