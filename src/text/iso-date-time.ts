import { isMoment } from './moment.js';

const DAY_MS = 86_400_000;

const CALENDAR_DAY = /^(\d{4})(-?)(\d\d)\2(\d\d)$/;
const WEEK_DAY = /^(\d{4})(-?)W(\d\d)\2([1-7])$/;
const TIME =
  /^([01]\d|2[0-3])(:?)([0-5]\d)(?:\2([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|([+-](?:0\d|1[0-5]))(?::?([0-5]\d))?)?$/;

/**
 * Reads a date with a time of day in the extended, basic or week form of ISO 8601. Pure.
 *
 * @returns the extended form with the same offset; undefined if the text has none of the forms, or the day does not exist
 */
export function isoDateTime(text: unknown): string | undefined {
  const [dayText = '', timeText = '', rest] = typeof text === 'string' ? text.split('T', 3) : [];
  const day = dayOf(dayText);
  const time = TIME.exec(timeText);
  if (!time || !isMoment(day) || rest !== undefined) return undefined;
  const [, hour, , minute, second = '00', fraction, offset = '', offsetHours, offsetMinutes = '00'] = time;
  const zone = offsetHours === undefined ? offset : `${offsetHours}:${offsetMinutes}`;
  return `${day}T${hour}:${minute}:${second}${fraction === undefined ? '' : `.${fraction}`}${zone}`;
}

/** The day in the form 2026-01-31, which may not exist; undefined for other texts. */
function dayOf(text: string): string | undefined {
  const [, year, , month, day] = CALENDAR_DAY.exec(text) ?? [];
  if (year !== undefined) return `${year}-${month}-${day}`;
  const [, weekYear, , week, weekday] = WEEK_DAY.exec(text) ?? [];
  return weekYear === undefined ? undefined : dayOfWeek(weekYear, Number(week), Number(weekday));
}

/** A day of an ISO week; undefined if the year does not have this week. */
function dayOfWeek(year: string, week: number, weekday: number): string | undefined {
  // The first week contains 4 January, and every week belongs to the year of its Thursday.
  const first = new Date(`${year}-01-04`);
  const monday = first.getTime() + ((week - 1) * 7 - ((first.getUTCDay() + 6) % 7)) * DAY_MS;
  const dayAt = (place: number) => new Date(monday + (place - 1) * DAY_MS).toISOString().split('T')[0];
  return dayAt(4)?.startsWith(`${year}-`) ? dayAt(weekday) : undefined;
}
