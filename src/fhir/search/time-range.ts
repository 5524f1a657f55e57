/** A span of time in milliseconds since 1970: from `from` on, and before `to`. */
export interface TimeRange {
  readonly from: number;
  readonly to: number;
}

/** All of time. */
export const ANY_TIME: TimeRange = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/** Prefixes that are supported (FHIR R4 §3.1.1.4.5). `ne` and `ap` are not. */
const PREFIXES = ['eq', 'gt', 'ge', 'lt', 'le', 'sa', 'eb'] as const;

type Prefix = (typeof PREFIXES)[number];

/** A date or a time of FHIR R4 §3.1.1.4.7, with the prefix that may precede it. */
const SEARCH_DATE =
  /^([a-z]{2})?(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:\d\d)?)?)?)?$/;

/** Moves a time forward by one unit of its precision. */
const NEXT = {
  year: (time: Date) => time.setUTCFullYear(time.getUTCFullYear() + 1),
  month: (time: Date) => time.setUTCMonth(time.getUTCMonth() + 1),
  day: (time: Date) => time.setUTCDate(time.getUTCDate() + 1),
  minute: (time: Date) => time.getTime() + 60_000,
  second: (time: Date) => time.getTime() + 1_000,
};

/**
 * Reads a value of a date parameter (FHIR R4 §3.1.1.4.7). A value means the whole span of its precision: `eq2026` is the
 * year. Times without an offset are in UTC; digits after the millisecond are ignored.
 *
 * @returns the range that matching moments are in; undefined if the value is not a date, or has another prefix
 */
export function readTimeRange(text: string): TimeRange | undefined {
  const [matched, prefix = 'eq', ...parts] = SEARCH_DATE.exec(text) ?? [];
  if (matched === undefined || !isPrefix(prefix)) return undefined;
  const span = spanOf(parts);
  return span && ofPrefix(prefix, span);
}

/** The moments that are in both ranges. */
export function both(left: TimeRange, right: TimeRange): TimeRange {
  return { from: Math.max(left.from, right.from), to: Math.min(left.to, right.to) };
}

const isPrefix = (text: string): text is Prefix => PREFIXES.some((prefix) => prefix === text);

/** A moment has no length, so `sa` is `gt`, and `eb` is `lt`. */
function ofPrefix(prefix: Prefix, { from, to }: TimeRange): TimeRange {
  switch (prefix) {
    case 'eq':
      return { from, to };
    case 'gt':
    case 'sa':
      return { ...ANY_TIME, from: to };
    case 'ge':
      return { ...ANY_TIME, from };
    case 'lt':
    case 'eb':
      return { ...ANY_TIME, to: from };
    case 'le':
      return { ...ANY_TIME, to };
  }
}

/** The span of a value's precision; undefined if the date does not exist. */
function spanOf(parts: readonly (string | undefined)[]): TimeRange | undefined {
  const [year = '', month, day, hour, minute = '00', second, fraction, offset = 'Z'] = parts;
  const date = `${year}-${month ?? '01'}-${day ?? '01'}`;
  const ms = (fraction ?? '').slice(0, 3).padEnd(3, '0');
  const from = Date.parse(`${date}T${hour ?? '00'}:${minute}:${second ?? '00'}.${ms}${offset}`);
  // JavaScript reads 31 February as 3 March, and 24:00 as the next day.
  const isReal = new Date(`${date}T00:00:00Z`).getUTCDate() === Number(day ?? 1) && hour !== '24';
  if (Number.isNaN(from) || !isReal || year === '0000') return undefined;
  if (fraction !== undefined) return { from, to: from + 10 ** Math.max(0, 3 - fraction.length) };
  const precision =
    (second && 'second') ?? (hour && 'minute') ?? (day && 'day') ?? (month && 'month') ?? ('year' as const);
  return { from, to: NEXT[precision as keyof typeof NEXT](new Date(from)) };
}
