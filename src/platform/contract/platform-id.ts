import { ValidateBy, type ValidationOptions } from 'class-validator';

/**
 * Characters (UTF-16 units) of an id that this service and the platform exchange, such as an appointment's; the
 * spec states no limit, and the platform's own ids are UUIDs.
 */
export const PLATFORM_ID_MAX = 512;

/** What no database keeps: NULs, and halves of characters. */
const UNFIT = /[\0\p{Cs}]/u;

/** Answers whether a value can be an id as it stands in bodies and events. */
export function isPlatformId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= PLATFORM_ID_MAX && !UNFIT.test(value);
}

/** As `isPlatformId`, for a field of a request. */
export function IsPlatformId(options?: ValidationOptions): PropertyDecorator {
  const defaultMessage = () => `must be an id of at most ${PLATFORM_ID_MAX} characters`;
  return ValidateBy({ name: 'isPlatformId', validator: { validate: isPlatformId, defaultMessage } }, options);
}
