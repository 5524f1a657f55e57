import { ValidateBy } from 'class-validator';
import { isMoment, NOT_A_MOMENT } from './moment.js';

/** A field that holds a moment, as a text. */
export function IsMoment(): PropertyDecorator {
  return ValidateBy({ name: 'isMoment', validator: { validate: isMoment, defaultMessage: () => NOT_A_MOMENT } });
}
