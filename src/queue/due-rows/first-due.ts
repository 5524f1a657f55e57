/**
 * When the first row of a lane is due, or will be, as SQL; null when none is. With the index on `(lane, due_at)` it costs
 * one row, however many are due.
 *
 * @param lane a constant, as SQL
 * @param more a further condition of the rows
 * @param order the rest of the index after the lane, where it is not the moment alone
 */
export const firstDue = (table: string, lane: number | string, more = 'TRUE', order = 'due_at'): string =>
  `(SELECT due_at FROM ${table} WHERE lane = ${lane} AND due_at IS NOT NULL AND ${more} ORDER BY ${order} LIMIT 1)`;
