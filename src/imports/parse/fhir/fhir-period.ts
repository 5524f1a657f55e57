import { isJsonObject, textIn } from '../row/json-object.js';

/** FHIR dateTime, also 2019 or 2019-03, as far as its year has four digits and is one of the common era. */
const DATE_TIME = /^(?!0000)(\d{4})(?:-(\d\d)(?:-(\d\d)(T.{1,40})?)?)?$/;

/** When a moment begins, and where it is a year, month or day, when that is over. */
function moment(value: unknown): { begins: Date; over: Date } | undefined {
  const [text, year, month, day, time] = DATE_TIME.exec(textIn(value) ?? '') ?? [];
  if (text === undefined) return undefined;
  const begins = new Date(text);
  if (Number.isNaN(begins.getTime())) return undefined;
  if (time !== undefined) return { begins, over: begins };
  const next = [Number(year), Number(month ?? 1) - 1, Number(day ?? 1)] as [number, number, number];
  next[day !== undefined ? 2 : month !== undefined ? 1 : 0]++;
  const over = new Date(0);
  over.setUTCFullYear(...next);
  return { begins, over };
}

/** When the first of these periods that says so begins, or else ended. */
export function sinceOf(...periods: unknown[]): Date | undefined {
  for (const period of periods) {
    if (!isJsonObject(period)) continue;
    const date = moment(period.start)?.begins ?? moment(period.end)?.begins;
    if (date) return date;
  }
  return undefined;
}

/** When the first of these periods to end is over; undefined while none says so. */
export function endOf(...periods: unknown[]): Date | undefined {
  const ends = periods.flatMap((period) => (isJsonObject(period) ? (moment(period.end)?.over ?? []) : []));
  return ends.length === 0 ? undefined : new Date(Math.min(...ends.map((end) => end.getTime())));
}

/** Whether something holds now; what says nothing does. */
export function isCurrent(period: unknown, now: Date): boolean {
  return !hasEnded(period, now) && !(isJsonObject(period) && (moment(period.start)?.begins ?? now) > now);
}

/** Whether something is over. */
export function hasEnded(period: unknown, now: Date): boolean {
  return (endOf(period) ?? Number.POSITIVE_INFINITY) <= now;
}
