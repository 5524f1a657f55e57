import { ValidateBy } from 'class-validator';

const DATE = /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$/;

/** Answers whether a text is an ISO 8601 date with its time of day (spec, `date`: session date and time, ISO 8601). */
export function isSessionDateTime(text: unknown): boolean {
  return isSessionDate(text) && String(text).includes('T');
}

/** Answers whether a text is an ISO 8601 calendar date, with or without a time of day (spec, `date`: ISO 8601). */
export function isSessionDate(text: unknown): boolean {
  const match = typeof text === 'string' ? DATE.exec(text) : null;
  if (!match) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1)
    .map((part) => Number(part ?? 0));
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
}

/**
 * A text of so many characters at most. Each code point counts, as usual: class-validator's
 * MaxLength leaves out variation selectors, so that a text without end could pass.
 */
export function MaxCharacters(max: number): PropertyDecorator {
  const validate = (value: unknown) => {
    if (typeof value !== 'string') return false;
    let count = 0;
    for (const _character of value) count += 1;
    return count <= max;
  };
  const defaultMessage = () => `must hold at most ${max} characters`;
  return ValidateBy({ name: 'maxCharacters', validator: { validate, defaultMessage } });
}
