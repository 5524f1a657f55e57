import { isMoment } from '../../text/moment.js';

/** A span of time in milliseconds since 1970: from `from` on, and before `to`. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** All of time. */
export const ANY_TIME: TimeRange = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/** A date or a time of FHIR R4 §3.1.1.4.7, with the prefix that may precede it. */
const SEARCH_DATE =
  /^([a-z]{2})?(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?)?)?$/;

/**
 * The prefixes that are supported (FHIR R4 §3.1.1.4.5), and what is in their range. `ne` and `ap` are not. A moment has no
 * length, so `sa` is `gt`, and `eb` is `lt`.
 */
const PREFIXES: Readonly<Record<string, (span: TimeRange) => TimeRange>> = {
  eq: (span) => span,
  gt: ({ to }) => ({ ...ANY_TIME, from: to }),
  sa: ({ to }) => ({ ...ANY_TIME, from: to }),
  ge: ({ from }) => ({ ...ANY_TIME, from }),
  lt: ({ from }) => ({ ...ANY_TIME, to: from }),
  eb: ({ from }) => ({ ...ANY_TIME, to: from }),
  le: ({ to }) => ({ ...ANY_TIME, to }),
};

/**
 * Reads a value of a date parameter (FHIR R4 §3.1.1.4.7). A value means the whole span of its precision: `eq2026` is the
 * year. Times without an offset are in UTC; digits after the millisecond are ignored.
 *
 * @returns the range that matching moments are in; undefined if the value is not a date, or has another prefix
 */
export function readTimeRange(text: string): TimeRange | undefined {
  const [, prefix = 'eq', ...parts] = SEARCH_DATE.exec(text) ?? [];
  const span = spanOf(parts);
  return span && PREFIXES[prefix]?.(span);
}

/** The moments that are in both ranges. */
export function both(left: TimeRange, right: TimeRange): TimeRange {
  return { from: Math.max(left.from, right.from), to: Math.min(left.to, right.to) };
}

/** The span of a value's precision; undefined if the date does not exist. */
function spanOf(parts: readonly (string | undefined)[]): TimeRange | undefined {
  const [year = '0000', month, day, time, second, fraction = '', offset = 'Z'] = parts;
  const start = `${year}-${month ?? '01'}-${day ?? '01'}T${time ?? '00:00'}:${second ?? '00'}${offset}`;
  if (year === '0000' || !isMoment(start)) return undefined;
  const from = Date.parse(start) + Number(fraction.slice(0, 3).padEnd(3, '0'));
  if (month === undefined) return { from, to: new Date(from).setUTCFullYear(Number(year) + 1) };
  if (day === undefined) return { from, to: new Date(from).setUTCMonth(Number(month)) };
  const unit = time === undefined ? 24 * 60 * 60_000 : second === undefined ? 60_000 : 1_000;
  return { from, to: from + Math.max(1, unit / 10 ** fraction.length) };
}
