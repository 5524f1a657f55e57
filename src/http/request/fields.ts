import { applyDecorators, type Type as Class } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { Type } from 'class-transformer';
import {
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  Max,
  Min,
  ValidateBy,
  ValidateNested,
  type ValidationOptions,
} from 'class-validator';
import { isoDateTime } from '../../text/iso-date-time.js';
import { isMoment, NOT_A_MOMENT } from '../../text/moment.js';

/** Makes a decorator that validates a field. @param message follows the field's name, and never contains its value */
export const fieldRule =
  (name: string, isValid: (value: unknown) => boolean, message: string) =>
  (options?: ValidationOptions): PropertyDecorator =>
    ValidateBy({ name, validator: { validate: isValid, defaultMessage: () => message } }, options);

/**
 * A text of at most `max` code points. class-validator's MaxLength ignores variation selectors, so that a text of any
 * length could pass.
 */
export function MaxCharacters(max: number): PropertyDecorator {
  const fits = (value: unknown) =>
    typeof value === 'string' && (value.length <= max || (value.length <= 2 * max && [...value].length <= max));
  return fieldRule('maxCharacters', fits, `must be a text of at most ${max} characters`)();
}

export const OptionalText = (maxLength: number): PropertyDecorator =>
  applyDecorators(ApiPropertyOptional({ type: String, maxLength }), IsOptional(), MaxCharacters(maxLength));

/** A number of bytes. */
export const OptionalSize = (maximum: number): PropertyDecorator =>
  applyDecorators(ApiPropertyOptional({ minimum: 1, maximum }), IsOptional(), IsInt(), Min(1), Max(maximum));

export const OptionalMoment = (): PropertyDecorator =>
  applyDecorators(
    ApiPropertyOptional({ format: 'date-time' }),
    IsOptional(),
    fieldRule('isMoment', isMoment, NOT_A_MOMENT)(),
  );

/** A date with a time of day that `isoDateTime` reads. */
export const OptionalDateTime = (): PropertyDecorator =>
  applyDecorators(
    IsOptional(),
    fieldRule(
      'isDateTime',
      (value) => isoDateTime(value) !== undefined,
      'must be an ISO 8601 date with a time of day: 2026-01-31T08:00:00Z, 20260131T080000Z or 2026-W05-6T08:00:00Z',
    )(),
  );

export const OneOf = (values: readonly string[]): PropertyDecorator =>
  IsIn(values, { message: `must be one of ${values.join(', ')}` });

export const OptionalOneOf = (values: readonly string[]): PropertyDecorator =>
  applyDecorators(IsOptional(), OneOf(values));

/** A list whose items fulfil a rule. @param what the items, such as "URLs" @param minItems of the list */
export function ListOf(what: string, isItem: (value: unknown) => boolean, minItems = 1): PropertyDecorator {
  const isList = (value: unknown) => Array.isArray(value) && value.length >= minItems && value.every(isItem);
  const message = minItems === 0 ? `must be a list of ${what}` : `must be a list of ${what} with at least ${minItems}`;
  return fieldRule('listOf', isList, message)();
}

/** A list of some of these values. */
export const OptionalListOf = (values: readonly string[]): PropertyDecorator =>
  applyDecorators(
    IsOptional(),
    ListOf(values.join(', '), (value) => values.includes(value as string), 0),
  );

/** Reads `true` and `false` of a query, for `Transform`. */
export const toBoolean = ({ value }: { value: unknown }): unknown =>
  ({ true: true, '1': true, '': true, false: false, '0': false })[String(value)] ?? value;

/** An object that is validated as an instance of a class. */
export const Nested = (type: () => Class): PropertyDecorator =>
  applyDecorators(IsObject(), ValidateNested(), Type(type));
