import { isSessionDate } from './session-date.js';

const SHAPE = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

/**
 * Answers whether a value is a date, or a date and time with its offset (RFC 3339), that there is: JavaScript takes 31
 * February for 3 March.
 */
export function isMoment(value: unknown): boolean {
  return typeof value === 'string' && SHAPE.test(value) && isSessionDate(value) && !Number.isNaN(Date.parse(value));
}
