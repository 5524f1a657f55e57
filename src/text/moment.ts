const MOMENT = /^(\d{4}-\d\d-\d\d)(T([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?(Z|[+-](0\d|1[0-5]):[0-5]\d))?$/;

/** The error for any other value, after the name of the field. */
export const NOT_A_MOMENT = 'must be a date such as 2026-01-31 or 2026-01-31T08:00:00Z';

/**
 * True if a value is an existing date, or date and time with offset (RFC 3339). JavaScript reads 31 February as
 * 3 March.
 */
export function isMoment(value: unknown): value is string {
  const day = typeof value === 'string' ? MOMENT.exec(value)?.[1] : undefined;
  if (day === undefined || Number.isNaN(Date.parse(day))) return false;
  return new Date(day).toISOString().startsWith(day);
}
