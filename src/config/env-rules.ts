import { ValidateBy, type ValidationArguments, type ValidationOptions } from 'class-validator';
import { isLoopbackHost } from './env-values.js';

/**
 * The narrowest window for the age of webhooks that may be set, in seconds. A retry may keep the timestamp of the first
 * try, so a window that ends before the last retry loses deliveries. The spec states 5 retries "with exponentially
 * growing delay" and 5 seconds for each answer, but no first delay; an hour covers delays that double from 115 seconds:
 * (1 + 2 + 4 + 8 + 16) * 115 + 6 * 5 = 3595. A sender known to wait longer needs a wider window.
 */
export const NARROWEST_AGE_WINDOW_SECONDS = 3_600;

function parseUrl(value: unknown): URL | undefined {
  try {
    return typeof value === 'string' ? new URL(value) : undefined;
  } catch {
    return undefined;
  }
}

/** A complete http or https address without user name, password, query or fragment. */
export function IsHttpUrl(options?: ValidationOptions): PropertyDecorator {
  const validate = (value: unknown) => {
    const url = parseUrl(value);
    return (
      url !== undefined && /^https?:$/.test(url.protocol) && !url.username && !url.password && !url.search && !url.hash
    );
  };
  return ValidateBy(
    {
      name: 'isHttpUrl',
      validator: { validate, defaultMessage: () => 'must be a complete http:// or https:// address' },
    },
    options,
  );
}

/** The platform's address: https, or http when it is on this machine (the simulator). */
export function IsPlatformUrl(options?: ValidationOptions): PropertyDecorator {
  const validate = (value: unknown) => {
    const url = parseUrl(value);
    if (!url || url.username || url.password || url.search || url.hash) return false;
    return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopbackHost(url.hostname));
  };
  return ValidateBy({ name: 'isPlatformUrl', validator: { validate } }, options);
}

/** A whole number of bytes, no less than another setting. @param other its name */
export function HoldsAtLeast(other: string): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) =>
    Number.isInteger(value) && Number(value) >= Number(Reflect.get(args?.object ?? {}, other));
  const defaultMessage = () => `must be a size such as 64 MiB or a number of bytes, at least ${other}`;
  return ValidateBy({ name: 'holdsAtLeast', validator: { validate, defaultMessage } });
}

/** A value that stands for the real platform; another is for rehearsals against the simulator, on a loopback host. */
export function IsForRehearsal(real: number, options?: ValidationOptions): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) => {
    const { PLATFORM_BASE_URL: base } = (args?.object ?? {}) as { PLATFORM_BASE_URL?: unknown };
    return value === real || isLoopbackHost(parseUrl(base)?.hostname ?? '');
  };
  return ValidateBy({ name: 'isForRehearsal', validator: { validate } }, options);
}
