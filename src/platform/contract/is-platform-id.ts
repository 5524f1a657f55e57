import { ValidateBy, type ValidationOptions } from 'class-validator';
import { isPlatformId, PLATFORM_ID_MAX } from './wire-types.js';

/** Validates a field of a request with `isPlatformId`. */
export function IsPlatformId(options?: ValidationOptions): PropertyDecorator {
  const defaultMessage = () => `must be an id of at most ${PLATFORM_ID_MAX} characters`;
  return ValidateBy({ name: 'isPlatformId', validator: { validate: isPlatformId, defaultMessage } }, options);
}
