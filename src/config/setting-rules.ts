import { isIP } from 'node:net';
import { applyDecorators } from '@nestjs/common';
import { Transform, Type } from 'class-transformer';
import {
  ArrayUnique,
  IsBoolean,
  IsOptional,
  Matches,
  ValidateBy,
  type ValidationArguments,
  type ValidationOptions,
} from 'class-validator';

/** All settings by name, for rules that depend on others. */
type Settings = Record<string, unknown>;

/** A rule for a setting. @param message follows the setting's name, and never contains its value */
export function rule(
  name: string,
  message: string | ((value: unknown) => string),
  fits: (value: unknown, settings: Settings) => boolean,
  options?: ValidationOptions,
): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) => fits(value, (args?.object ?? {}) as Settings);
  const defaultMessage = (args?: ValidationArguments) => (typeof message === 'string' ? message : message(args?.value));
  return ValidateBy({ name, validator: { validate, defaultMessage } }, options);
}

const fromText = (read: (text: string) => unknown): PropertyDecorator =>
  Transform(({ value }) => (typeof value === 'string' ? read(value) : value));

export const Trimmed = (): PropertyDecorator => fromText((text) => text.trim());
export const ToNumber = Type(() => Number);
export const WholeNumber = (min: number, max: number) => numberWithin(min, max, Number.isInteger, 'a whole number');
export const Seconds = (min: number, max: number) => numberWithin(min, max, Number.isFinite, 'a number');

function numberWithin(min: number, max: number, isRight: (value: unknown) => boolean, what: string): PropertyDecorator {
  const fits = (value: unknown) => isRight(value) && Number(value) >= min && Number(value) <= max;
  return applyDecorators(rule('numberWithin', `must be ${what} from ${min} to ${max}`, fits), ToNumber);
}

/** How long something is kept: days, or `off` for ever. */
export type Days = number | 'off';

/** @param least days */
export function KeptDays(least = 1): PropertyDecorator {
  const fits = (value: unknown) =>
    value === 'off' || (Number.isInteger(value) && Number(value) >= least && Number(value) <= 36_500);
  const daysOf = (text: string) => (text.trim().toLowerCase() === 'off' ? 'off' : Number(text));
  const message = `must be whole days from ${least} to 36500, or off to keep forever`;
  return applyDecorators(rule('keptDays', message, fits), fromText(daysOf));
}

/** True or false, in the usual spellings. */
export const Flag = () =>
  applyDecorators(
    IsBoolean({ message: 'must be true or false' }),
    fromText((text) => ({ true: true, '1': true, false: false, '0': false })[text.trim().toLowerCase()] ?? text),
  );

/** What commas separate, without blanks around and between the items. */
export const List = (): PropertyDecorator => fromText(splitList);

/** Keys as `id:base64,…`: the first is used, all are accepted. */
export const AreKeys = (): PropertyDecorator =>
  applyDecorators(
    List(),
    IsOptional(),
    Matches(/^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/]{43}=$/, {
      each: true,
      message: 'must be id:base64 pairs, each key being 32 bytes (openssl rand -base64 32)',
    }),
    ArrayUnique((pair: string) => String(pair).split(':')[0], { message: 'must not name two keys alike' }),
  );

/** Secrets, separated by commas. One with a comma or a blank at its ends is given as a JSON list: `["a,b"]`. */
export const Secrets = (): PropertyDecorator =>
  fromText((text) => (text.trimStart().startsWith('[') ? jsonTexts(text) : undefined) ?? splitList(text));

/** A size in bytes such as `5 MiB`, `512KiB` or `1048576`. @param least bytes, or the setting that it must not be below */
export function ByteSize(least: number | string): PropertyDecorator {
  const fits = (value: unknown, settings: Settings) =>
    Number.isInteger(value) && Number(value) >= Number(typeof least === 'number' ? least : settings[least]);
  const message = `must be a size such as 64 MiB or 512 KiB, or a number of bytes, at least ${least}`;
  return applyDecorators(rule('byteSize', message, fits), fromText(bytesOf));
}

/** A complete http or https address without user name, password, query or fragment. */
export const IsHttpUrl = (options?: ValidationOptions): PropertyDecorator =>
  url('must be a complete http:// or https:// address', ({ protocol }) => /^https?:$/.test(protocol), options);

const isHttpsOrLoopback = ({ protocol, hostname }: URL) =>
  protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));

/** An OpenID provider: https, or http when it is on this machine. */
export const IsIssuer = (): PropertyDecorator =>
  applyDecorators(
    IsOptional(),
    url('must be the https:// address of an OpenID provider (http:// only for a loopback host)', isHttpsOrLoopback),
  );

/** One of several settings that stand together. */
export function SetTogether(names: readonly string[]): PropertyDecorator {
  const message = `must be set, as ${names.join(', ')} are set together or not at all`;
  return rule(
    'setTogether',
    message,
    (value, settings) => value !== undefined || names.every((name) => settings[name] === undefined),
  );
}

/** A page of the platform's, which a browser is sent to with a token: https, or http when it is on this machine. */
export const IsPlatformPage = (): PropertyDecorator =>
  url('must be the https:// address of a page (http:// only for a loopback host)', isHttpsOrLoopback);

/** The platform's address, on which paths are appended: https, or http when it is on this machine (the simulator). */
export const IsPlatformUrl = (): PropertyDecorator =>
  applyDecorators(
    url('must be the https:// address of the platform (http:// only for a loopback host)', isHttpsOrLoopback),
    fromText((text) => text.trim().replace(/(?<!\/)\/+$/, '')),
  );

/** An HTTP proxy. A bare host means http. */
export const IsProxyUrl = (): PropertyDecorator =>
  applyDecorators(
    rule(
      'isProxyUrl',
      'must be the http:// or https:// address of a proxy such as http://proxy.example:3128',
      (value) => /^https?:$/.test(parseUrl(value)?.protocol ?? ''),
    ),
    fromText((text) => (text.includes('://') ? text.trim() : `http://${text.trim()}`)),
  );

/** A value that stands for the real platform; another is for rehearsals against the simulator, on a loopback host. */
export function IsForRehearsal(real: number): PropertyDecorator {
  const message = `must be ${real}: only against a platform on a loopback host may it be less`;
  return rule('isForRehearsal', message, (value, settings) => value === real || isPlatformHere(settings));
}

/** Addresses and ranges such as `10.0.0.5` or `10.0.0.0/8`. A range of all addresses would let anybody name any. */
export function AreAddressRanges(): PropertyDecorator {
  const fits = (value: unknown) => typeof value === 'string' && isAddressRange(value);
  const message = 'must be addresses or ranges such as 10.0.0.5,10.1.0.0/16, none of all addresses';
  return applyDecorators(rule('areAddressRanges', message, fits, { each: true }), List());
}

function isAddressRange(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const version = isIP(address);
  if (version === 0 || more.length > 0) return false;
  if (length === undefined) return true;
  return /^[1-9]\d{0,2}$/.test(length) && Number(length) <= (version === 4 ? 32 : 128);
}

/** Whether the host name of a URL means this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3). */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|.*\.localhost|\[::1\]|127(\.\d+){3})$/.test(hostname);
}

function url(message: string, fits: (url: URL) => boolean, options?: ValidationOptions): PropertyDecorator {
  const isAddress = (value: unknown) => {
    const url = parseUrl(value);
    return url !== undefined && !url.username && !url.password && !url.search && !url.hash && fits(url);
  };
  return rule('isAddress', message, isAddress, options);
}

export function parseUrl(value: unknown): URL | undefined {
  return typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
}

/** Whether the platform is on this machine, as the simulator is. */
export function isPlatformHere(settings: Settings): boolean {
  return isLoopbackHost(parseUrl(settings.PLATFORM_BASE_URL)?.hostname ?? '');
}

const UNITS: Record<string, number> = { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, kb: 1e3, mb: 1e6, gb: 1e9 };

/** @returns the text itself when it is no size, so that validation can name it */
function bytesOf(text: string): unknown {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
  const size = unit === '' ? 1 : UNITS[unit.toLowerCase()];
  return number && size ? Math.round(Number(number) * size) : text;
}

function splitList(text: string): string[] {
  return text.split(',').flatMap((item) => item.trim() || []);
}

function jsonTexts(json: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) && list.every((item) => typeof item === 'string' && item !== '') ? list : undefined;
  } catch {
    return undefined;
  }
}

const THRESHOLD = /^(unlimited|\d{1,3}(\.\d+)?%,\d{1,7})$/;
export const IsThreshold = () =>
  Matches(THRESHOLD, { message: 'must be per cent and people such as 10%,5 or the word unlimited' });
