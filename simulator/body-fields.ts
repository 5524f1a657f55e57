import { invalid } from './refusal.js';

/** A JSON object with unchecked values. */
export type Fields = Record<string, unknown>;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const EMAIL = /^[^\s@]+@[^\s@]+$/;
const ISO_8601 = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/;

/** @throws Refusal 400 unless the value is a JSON object; `what` names it in the message. */
export function objectOf(value: unknown, what = 'The body'): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`${what} must be a JSON object.`);
  }
  return value as Fields;
}

/** A non-empty string. @throws Refusal 400 otherwise. */
export function requiredText(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== 'string' || value.trim() === '') throw invalid(`${name} is required and must be a string.`);
  return value;
}

/** A string; absent and null are the same. @throws Refusal 400 for any other type. */
export function optionalText(fields: Fields, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw invalid(`${name} must be a string.`);
  return value;
}

/** A list of non-blank strings; it may be empty. @throws Refusal 400 otherwise. */
export function requiredTexts(fields: Fields, name: string): string[] {
  const value = fields[name];
  if (!Array.isArray(value)) throw invalid(`${name} is required and must be a list of strings.`);
  return value.map((item: unknown) => {
    if (typeof item !== 'string' || item.trim() === '') throw invalid(`${name} must contain only non-empty strings.`);
    return item;
  });
}

/** One of the allowed values, or undefined when absent. @throws Refusal 400 otherwise. */
export function optionalChoice<Choice extends string>(
  fields: Fields,
  name: string,
  allowed: readonly Choice[],
): Choice | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (!isChoice(value, allowed)) throw invalid(`${name} must be one of ${allowed.join(', ')}.`);
  return value;
}

export function isChoice<Choice extends string>(value: unknown, allowed: readonly Choice[]): value is Choice {
  return (allowed as readonly unknown[]).includes(value);
}

/** An email: one @ with text on both sides, without further checks. @throws Refusal 400 otherwise. */
export function emailOf(value: string): string {
  if (!EMAIL.test(value)) throw invalid('email must be an email address.');
  return value;
}

export function isUuid(value: unknown): value is string {
  return typeof value === 'string' && UUID.test(value);
}

/** A date or a date and time of ISO 8601 that exists in the calendar. */
export function isIsoDate(value: string): boolean {
  return ISO_8601.test(value) && !Number.isNaN(Date.parse(value));
}
