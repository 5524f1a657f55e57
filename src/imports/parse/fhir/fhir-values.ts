import { isJsonObject, type JsonObject } from '../../../text/json-object.js';

/** Maximum items read of a list. No person has as many names, identifiers or providers. */
const ITEMS_MAX = 1_000;

/** Maximum characters of a reference, id or identifier. */
const TOKEN_MAX = 2_000;

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

/** A text that references may contain. Undefined if it is too long. */
export function tokenIn(value: unknown): string | undefined {
  const text = textIn(value);
  return text && text.length <= TOKEN_MAX ? text : undefined;
}

/** FHIR dateTime, also 2019 or 2019-03, from the year 1. */
const DATE_TIME = /^(?!0000)\d{4}(?:-\d\d(?:-\d\d(?:T.{1,40})?)?)?$/;

/** Maximum days of a year, month or day, by the length of its text. */
const DAYS: Record<number, number> = { 4: 366, 7: 31, 10: 1 };

export function dateIn(value: unknown): Date | undefined {
  const date = new Date(DATE_TIME.exec(textIn(value) ?? '')?.[0] ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/** Like `dateIn`, but the end of the year, month or day if no more is known. */
export function endIn(value: unknown): Date | undefined {
  const days = DAYS[textIn(value)?.length ?? 0] ?? 0;
  const date = dateIn(value);
  return date && new Date(date.getTime() + days * 86_400_000);
}

export function hasEnded(period: unknown, now: Date): boolean {
  return (endIn(objectIn(period).end) ?? Number.POSITIVE_INFINITY) <= now;
}

/** True if a period includes this time. Unknown bounds are open. */
export function isCurrent(period: unknown, now: Date): boolean {
  return !hasEnded(period, now) && (dateIn(objectIn(period).start) ?? now) <= now;
}
