import { applyDecorators } from '@nestjs/common';
import { Transform, Type } from 'class-transformer';
import {
  IsInt,
  IsNumber,
  Max,
  Min,
  ValidateBy,
  type ValidationArguments,
  type ValidationOptions,
} from 'class-validator';

/** Rules of settings: each says what its value must be, and turns the text of the environment into it. */

const fromText = (read: (text: string) => unknown): PropertyDecorator =>
  Transform(({ value }) => (typeof value === 'string' ? read(value) : value));

export const Trimmed = (): PropertyDecorator => fromText((text) => text.trim());

export const WholeNumber = (min: number, max: number): PropertyDecorator =>
  applyDecorators(
    Max(max),
    Min(min),
    IsInt(),
    Type(() => Number),
  );

export const Seconds = (min: number, max: number): PropertyDecorator =>
  applyDecorators(
    Max(max),
    Min(min),
    IsNumber(),
    Type(() => Number),
  );

/** True or false, in the usual spellings. */
export const Flag = (): PropertyDecorator =>
  fromText((text) => ({ true: true, '1': true, false: false, '0': false })[text.trim().toLowerCase()] ?? text);

/** What commas separate, without blanks around and between the items. */
export const List = (): PropertyDecorator => fromText(splitList);

/** Secrets, separated by commas. One with a comma or a blank at its ends is given as a JSON list: `["a,b"]`. */
export const Secrets = (): PropertyDecorator =>
  fromText((text) => (text.trimStart().startsWith('[') ? jsonTexts(text) : undefined) ?? splitList(text));

/** A size in bytes such as `5 MiB`, `512KiB` or `1048576`. @param least bytes, or the setting that it must not be below */
export function ByteSize(least: number | string): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) =>
    Number.isInteger(value) && Number(value) >= Number(typeof least === 'number' ? least : settingOf(args, least));
  const defaultMessage = () => `must be a size such as 64 MiB or 512 KiB, or a number of bytes, at least ${least}`;
  return applyDecorators(ValidateBy({ name: 'byteSize', validator: { validate, defaultMessage } }), fromText(bytesOf));
}

/** A complete http or https address without user name, password, query or fragment. */
export const IsHttpUrl = (options?: ValidationOptions): PropertyDecorator =>
  url('must be a complete http:// or https:// address', ({ protocol }) => /^https?:$/.test(protocol), options);

/** The platform's address, on which paths are appended: https, or http when it is on this machine (the simulator). */
export const IsPlatformUrl = (): PropertyDecorator =>
  applyDecorators(
    url(
      'must be the https:// address of the platform (http:// only for a loopback host)',
      ({ protocol, hostname }) => protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname)),
    ),
    fromText((text) => text.trim().replace(/(?<!\/)\/+$/, '')),
  );

/** A value that stands for the real platform; another is for rehearsals against the simulator, on a loopback host. */
export function IsForRehearsal(real: number, options?: ValidationOptions): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) =>
    value === real || isLoopbackHost(parseUrl(settingOf(args, 'PLATFORM_BASE_URL'))?.hostname ?? '');
  return ValidateBy({ name: 'isForRehearsal', validator: { validate } }, options);
}

/**
 * Answers whether a URL's host name means this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
 *
 * @param hostname as `URL.hostname` spells it: IPv6 in brackets
 */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|.*\.localhost|\[::1\]|127(\.\d+){3})$/.test(hostname);
}

function url(message: string, fits: (url: URL) => boolean, options?: ValidationOptions): PropertyDecorator {
  const validate = (value: unknown) => {
    const url = parseUrl(value);
    return url !== undefined && !url.username && !url.password && !url.search && !url.hash && fits(url);
  };
  return ValidateBy({ name: 'isAddress', validator: { validate, defaultMessage: () => message } }, options);
}

function parseUrl(value: unknown): URL | undefined {
  return typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
}

/** Another setting of the same environment. */
function settingOf(args: ValidationArguments | undefined, name: string): unknown {
  return Reflect.get(args?.object ?? {}, name);
}

const UNITS: Record<string, number> = { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, kb: 1e3, mb: 1e6, gb: 1e9 };

/** @returns the text itself when it is no size, so that validation can name it */
function bytesOf(text: string): unknown {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
  const size = unit === '' ? 1 : UNITS[unit.toLowerCase()];
  return number && size ? Math.round(Number(number) * size) : text;
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function jsonTexts(json: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) && list.every((item) => typeof item === 'string' && item !== '') ? list : undefined;
  } catch {
    return undefined;
  }
}
