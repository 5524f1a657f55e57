import { isIP } from 'node:net';

/** All settings by name, for rules that depend on others. */
type Settings = Record<string, unknown>;

/**
 * Finds the fault of a value.
 *
 * @returns the requirement, in words that follow the setting's name, without the value; undefined if the value is right
 */
export type Rule = (value: unknown, settings: Settings) => string | undefined;

export const rule =
  (message: string, isRight: (value: unknown, settings: Settings) => boolean): Rule =>
  (value, settings) =>
    isRight(value, settings) ? undefined : message;

/** The reader of a setting's text, the rules of its value, and its default. */
export class Setting<T> {
  constructor(
    readonly read: (text: string) => unknown,
    readonly rules: readonly Rule[] = [],
    readonly fallback?: T,
  ) {}

  /** With a default. */
  or(fallback: T): Setting<T> {
    return new Setting(this.read, this.rules, fallback);
  }

  optional(): Setting<T | undefined> {
    const unlessUnset =
      (each: Rule): Rule =>
      (value, settings) =>
        value === undefined ? undefined : each(value, settings);
    return new Setting<T | undefined>(this.read, this.rules.map(unlessUnset));
  }

  /** With another rule, which applies to an optional setting even if it is unset. */
  and(another: Rule): Setting<T> {
    return new Setting(this.read, [another, ...this.rules], this.fallback);
  }
}

const unchanged = (text: string) => text;
const trimmed = (text: string) => text.trim();

export const text = new Setting<string>(unchanged, [rule('must be set', (value) => value !== undefined)]);

export const matching = (pattern: RegExp, message: string) =>
  new Setting<string>(trimmed, [rule(message, (value) => typeof value === 'string' && pattern.test(value))]);

export const oneOf = <T extends string>(values: readonly T[]) =>
  new Setting<T>(trimmed, [rule(`must be one of: ${values.join(', ')}`, (value) => values.includes(value as T))]);

const numberFrom = (what: string, isRight: (value: unknown) => boolean) => (min: number, max: number) => {
  const fits = (value: unknown) => isRight(value) && Number(value) >= min && Number(value) <= max;
  return new Setting<number>(Number, [rule(`must be ${what} from ${min} to ${max}`, fits)]);
};

export const wholeNumber = numberFrom('a whole number', Number.isInteger);
export const seconds = numberFrom('a number', Number.isFinite);

/** True or false, in the usual spellings. */
export const flag = new Setting<boolean>(
  (text) => ({ true: true, '1': true, false: false, '0': false })[text.trim().toLowerCase()] ?? text,
  [rule('must be true or false', (value) => typeof value === 'boolean')],
);

/** How long something is kept: days, or `off` to keep it forever. */
export type Days = number | 'off';

export const keptDays = (min = 1) =>
  new Setting<Days>(
    (text) => (text.trim().toLowerCase() === 'off' ? 'off' : Number(text)),
    [
      rule(
        `must be whole days from ${min} to 36500, or off to keep forever`,
        (value) => value === 'off' || (Number.isInteger(value) && Number(value) >= min && Number(value) <= 36_500),
      ),
    ],
  );

const UNITS: Record<string, number> = { b: 1, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3, kb: 1e3, mb: 1e6, gb: 1e9 };

/** A size in bytes such as `5 MiB`, `512KiB` or `1048576`. @param min bytes, or the setting that it must not be below */
export const byteSize = (min: number | string) =>
  new Setting<number>(
    (text) => {
      const [, number, unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
      return Math.round(Number(number) * (unit === '' ? 1 : (UNITS[unit.toLowerCase()] ?? Number.NaN)));
    },
    [
      rule(
        `must be a size such as 64 MiB or 512 KiB, or a number of bytes, at least ${min}`,
        (value, settings) =>
          Number.isInteger(value) && Number(value) >= Number(typeof min === 'number' ? min : settings[min]),
      ),
    ],
  );

const splitList = (text: string) => text.split(',').flatMap((item) => item.trim() || []);

/** Items that commas separate, without the blanks around them. */
export const list = new Setting<string[]>(splitList);
export const listOf = <T extends string = string>(message: string, fits: (item: string) => boolean) =>
  new Setting<T[]>(splitList, [rule(message, (value) => Array.isArray(value) && value.every(fits))]);

/** Hosts, separated by commas. */
export const hosts = listOf(
  'must be host names or addresses such as ehr.internal,10.0.0.5, without a scheme, port, path, range or wildcard',
  (host) => isIP(host) !== 0 || /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(host),
);

/** Secrets, separated by commas. One with a comma or a blank at its ends is given as a JSON list: `["a,b"]`. */
export const secrets = (message: string) =>
  new Setting<string[]>(
    (text) => jsonTexts(text) ?? splitList(text),
    [rule(message, (value) => Array.isArray(value) && value.length > 0)],
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
export const keys = listOf('must be id:base64 pairs, each key being 32 bytes (openssl rand -base64 32)', (pair) =>
  /^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/]{43}=$/.test(pair),
)
  .and(
    rule('must not name two keys alike', (value) => {
      const ids = Array.isArray(value) ? value.map((pair) => String(pair).split(':')[0]) : [];
      return new Set(ids).size === ids.length;
    }),
  )
  .optional();

/** Addresses and ranges such as `10.0.0.5` or `10.0.0.0/8`. A range of all addresses would let anyone name any. */
export const addressRanges = listOf(
  'must be addresses or ranges such as 10.0.0.5,10.1.0.0/16, none of all addresses',
  (text) => {
    const [address = '', length = '1', ...more] = text.split('/');
    const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
    return more.length === 0 && /^[1-9]\d{0,2}$/.test(length) && Number(length) <= bits;
  },
);

export const threshold = matching(
  /^(unlimited|\d{1,3}(\.\d+)?%,\d{1,7})$/,
  'must be a percentage and a number of people such as 10%,5, or unlimited',
);

export function parseUrl(value: unknown): URL | undefined {
  return typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
}

/** True if the host name of a URL means this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3). */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|.*\.localhost|\[::1\]|127(\.\d+){3})$/.test(hostname);
}

/** True if the platform is on this machine, as the simulator is. */
export const isPlatformHere = (settings: Settings): boolean =>
  isLoopbackHost(parseUrl(settings.PLATFORM_BASE_URL)?.hostname ?? '');

const isHttp = ({ protocol }: URL) => /^https?:$/.test(protocol);
const isHttpsOrLoopback = ({ protocol, hostname }: URL) =>
  protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));

/** True for a complete address without user name, password, query or fragment. */
function isPlainUrl(value: unknown, fits: (url: URL) => boolean): boolean {
  const url = parseUrl(value);
  return url !== undefined && !url.username && !url.password && !url.search && !url.hash && fits(url);
}

const HTTP_RULE = 'must be a complete http:// or https:// address';
export const httpUrl = new Setting<string>(unchanged, [rule(HTTP_RULE, (value) => isPlainUrl(value, isHttp))]);
export const httpUrls = listOf(HTTP_RULE, (item) => isPlainUrl(item, isHttp));

const httpsUrl = (what: string, read = unchanged) =>
  new Setting<string>(read, [
    rule(`must be the https:// address of ${what} (http:// only for a loopback host)`, (value) =>
      isPlainUrl(value, isHttpsOrLoopback),
    ),
  ]);

/** Paths are appended to it. */
export const platformUrl = httpsUrl('the platform', (text) => text.trim().replace(/(?<!\/)\/+$/, ''));
/** A page of the platform, which a browser is sent to with a token. */
export const platformPage = httpsUrl('a page', (text) => (text.includes('://') ? text : `https://${text}`));
export const issuer = httpsUrl('an OpenID provider');

/** An HTTP proxy, which may have a user and a password. A bare host means http. */
export const proxyUrl = new Setting<string>(
  (text) => (text.includes('://') ? text.trim() : `http://${text.trim()}`),
  [
    rule('must be the http:// or https:// address of a proxy such as http://proxy.example:3128', (value) =>
      /^https?:$/.test(parseUrl(value)?.protocol ?? ''),
    ),
  ],
);

/** Settings that are set together or not at all. */
export const togetherWith = (names: readonly string[]): Rule =>
  rule(
    `must be set, as ${names.join(', ')} are set together or not at all`,
    (value, settings) => value !== undefined || names.every((name) => settings[name] === undefined),
  );
