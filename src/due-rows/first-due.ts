/**
 * SQL of the time when the first row of a lane is or will be due; null if the lane has none. With an index on
 * `(lane, due_at)` it reads one row.
 *
 * @param lane SQL constant
 * @param more further SQL condition
 * @param order the columns of the index after the lane
 */
export const firstDue = (table: string, lane: number | string, more = 'TRUE', order = 'due_at'): string =>
  `(SELECT due_at FROM ${table} WHERE lane = ${lane} AND due_at IS NOT NULL AND ${more} ORDER BY ${order} LIMIT 1)`;
