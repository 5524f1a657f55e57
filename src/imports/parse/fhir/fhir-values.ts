import { isJsonObject, type JsonObject } from '../text/json-records.js';

/** Maximum items read of a list. No person has as many names, identifiers or providers. */
const ITEMS_MAX = 1_000;

/** The objects in a list. Empty if the value is not a list. */
export function objectsIn(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.slice(0, ITEMS_MAX).filter(isJsonObject) : [];
}

/** The value if it is an object; otherwise an empty one. */
export function objectIn(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** A trimmed string. Undefined if it is empty or the value is not a string. */
export function textIn(value: unknown): string | undefined {
  return (typeof value === 'string' && value.trim()) || undefined;
}

/** FHIR dateTime, also 2019 or 2019-03, from the year 1. */
const DATE_TIME = /^(?!0000)\d{4}(?:-(\d\d)(?:-(\d\d)(T.{1,40})?)?)?$/;

interface Moment {
  begins: Date;
  /** Later than `begins` if only the year, month or day is known. */
  ends: Date;
}

export function momentIn(value: unknown): Moment | undefined {
  const [text, month, day, time] = DATE_TIME.exec(textIn(value) ?? '') ?? [];
  const begins = new Date(text ?? Number.NaN);
  if (Number.isNaN(begins.getTime())) return undefined;
  const ends = new Date(begins);
  if (time !== undefined) return { begins, ends };
  if (day !== undefined) ends.setUTCDate(ends.getUTCDate() + 1);
  else if (month !== undefined) ends.setUTCMonth(ends.getUTCMonth() + 1);
  else ends.setUTCFullYear(ends.getUTCFullYear() + 1);
  return { begins, ends };
}

/** The start of the first of these periods that has a start, or an end. */
export function sinceOf(...periods: unknown[]): Date | undefined {
  const starts = periods.map(objectIn).map(({ start, end }) => (momentIn(start) ?? momentIn(end))?.begins);
  return starts.find((date) => date !== undefined);
}

export function hasEnded(period: unknown, now: Date): boolean {
  return (momentIn(objectIn(period).end)?.ends ?? Number.POSITIVE_INFINITY) <= now;
}

/** True if a period includes this time. Unknown bounds are open. */
export function isCurrent(period: unknown, now: Date): boolean {
  return !hasEnded(period, now) && (momentIn(objectIn(period).start)?.begins ?? now) <= now;
}
