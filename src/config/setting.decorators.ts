import { applyDecorators } from '@nestjs/common';
import { Transform } from 'class-transformer';
import { IsArray, IsIn, Matches, ValidateBy } from 'class-validator';
import type { Env } from './env.js';
import { isStrongSecret, MIN_LENGTH, OFF } from './secret-strength.js';
import { isHttpsOrLoopback, isPlainUrl, parseUrl } from './urls.js';

// The decorators of `Env` read the text of a variable and check its value. A message follows the name of its setting and
// never repeats the value, because it may be a secret.

/** Reads the text of a variable. Values that are no text are defaults. */
export const Read = (read: (text: string) => unknown) =>
  Transform(({ value }) => (typeof value === 'string' ? read(value) : value));

/** Checks a value. @param message what it must be @param isRight also gets the other settings */
export const Rule = (message: string, isRight: (value: unknown, env: Env) => boolean) =>
  ValidateBy({
    name: message,
    validator: { validate: (value, args) => isRight(value, args?.object as Env), defaultMessage: () => message },
  });

const between = (value: unknown, min: number, max: number) => Number(value) >= min && Number(value) <= max;

export const WholeNumber = (min: number, max: number) =>
  applyDecorators(
    Read(Number),
    Rule(
      `must be a whole number from ${min} to ${max}`,
      (value) => Number.isInteger(value) && between(value, min, max),
    ),
  );

export const Seconds = (min: number, max: number) =>
  applyDecorators(
    Read(Number),
    Rule(`must be a number from ${min} to ${max}`, (value) => Number.isFinite(value) && between(value, min, max)),
  );

/** Words of a fixed list. */
export const OneOf = (...values: readonly string[]) =>
  applyDecorators(
    Read((text) => text.trim()),
    IsIn(values, { message: `must be one of: ${values.join(', ')}` }),
  );

/** True or false, in the usual spellings. */
export const Flag = () =>
  applyDecorators(
    Read((text) => ({ true: true, '1': true, false: false, '0': false })[text.trim().toLowerCase()] ?? text),
    IsIn([true, false], { message: 'must be true or false' }),
  );

/** Text without blanks around it. */
export const Matching = (pattern: RegExp, message: string) =>
  applyDecorators(
    Read((text) => text.trim()),
    Matches(pattern, { message }),
  );

/** How long something is kept: days, or `off` to keep it forever. */
export type Days = number | 'off';

export const KeptDays = (min = 1) =>
  applyDecorators(
    Read((text) => (text.trim().toLowerCase() === 'off' ? 'off' : Number(text))),
    Rule(
      `must be whole days from ${min} to 36500, or off to keep forever`,
      (value) => value === 'off' || (Number.isInteger(value) && between(value, min, 36_500)),
    ),
  );

const UNITS: Record<string, number> = { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, kb: 1e3, mb: 1e6, gb: 1e9 };

function bytesOf(text: string): number {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
  return Math.round(Number(number) * (unit === '' ? 1 : (UNITS[unit.toLowerCase()] ?? Number.NaN)));
}

/** A size such as `5 MiB`, `512KiB` or `1048576`. @param min bytes, or the setting that it must not be below */
export const ByteSize = (min: number) =>
  applyDecorators(
    Read(bytesOf),
    Rule(
      `must be a size such as 64 MiB or 512 KiB, or a number of bytes, at least ${min}`,
      (value) => Number.isInteger(value) && Number(value) >= min,
    ),
  );

const splitList = (text: string) => text.split(',').flatMap((item) => item.trim() || []);

/** Items that commas separate, without the blanks around them. */
export const List = (message = 'must be a list', fits: (item: string) => boolean = () => true) =>
  applyDecorators(
    Read(splitList),
    Rule(message, (value) => Array.isArray(value) && value.every(fits)),
  );

/** Secrets, separated by commas. One with a comma or a blank at its ends is given as a JSON list: `["a,b"]`. */
export const Secrets = (message: string) =>
  applyDecorators(
    Read((text) => jsonTexts(text) ?? splitList(text)),
    IsArray({ message }),
    Rule(message, (value) => Array.isArray(value) && value.length > 0),
  );

function jsonTexts(json: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) && list.every((item) => typeof item === 'string' && item !== '') ? list : undefined;
  } catch {
    return undefined;
  }
}

/** Keys as `id:base64,…`: the first is used, all are accepted. */
export const Keys = () =>
  applyDecorators(
    Read(splitList),
    Rule(
      'must be id:base64 pairs, each key being 32 bytes (echo "k1:$(openssl rand -base64 32)")',
      (value) => Array.isArray(value) && value.length > 0 && value.every((pair) => KEY_PAIR.test(pair)),
    ),
    Rule('must not name two keys alike', (value) => {
      const ids = Array.isArray(value) ? value.map((pair) => String(pair).split(':')[0]) : [];
      return new Set(ids).size === ids.length;
    }),
  );

/** A list of keys with one key. */
export const OneKey = () =>
  Rule(
    'must be one key, because fingerprints are not recomputed: keep only the first, which made the stored ones',
    (value) => !Array.isArray(value) || value.length <= 1,
  );

const KEY_PAIR = /^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/]{43}=$/;

/** The first key of this service's API, made by its operator. */
export const BootstrapKey = () =>
  Rule(
    `must hold a first administrator key of at least ${MIN_LENGTH} random characters (openssl rand -hex 24), or off`,
    (value) => typeof value === 'string' && (value === OFF || isStrongSecret(value)),
  );

/** An https address, or http on loopback, to which paths are appended. @param what the address is of */
export const HttpsUrl = (what: string) =>
  Rule(
    `must be the https:// address of ${what} (http:// only for a loopback host)`,
    (value) => isPlainUrl(value) && isHttpsOrLoopback(new URL(String(value))),
  );

export const HttpUrls = () => List('must be complete http:// or https:// addresses', isPlainUrl);

/** An HTTP proxy, which may have a user and a password. A bare host means http. */
export const ProxyUrl = () =>
  applyDecorators(
    Read((text) => (text.includes('://') ? text.trim() : `http://${text.trim()}`)),
    Rule('must be the http:// or https:// address of a proxy such as http://proxy.example:3128', (value) =>
      /^https?:$/.test(parseUrl(value)?.protocol ?? ''),
    ),
  );
