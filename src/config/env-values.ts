const UNITS: Record<string, number> = {
  '': 1,
  b: 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
};

/**
 * Reads a size such as `5 MiB`, `512KiB` or `1048576`.
 *
 * @returns bytes, or the value itself when it is no size, so that validation can name it
 */
export function parseByteSize(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(value.trim());
  const unit = UNITS[match?.[2]?.toLowerCase() ?? ''];
  return match && unit ? Math.round(Number(match[1]) * unit) : value;
}

/** Splits a comma-separated setting, dropping blanks around and between the items. */
export function splitList(value: string): string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/**
 * Splits a setting that holds secrets. One with a comma or a blank at its ends is given as JSON: `["a,b"]`.
 *
 * @returns the texts of a JSON list as they stand, otherwise what the commas separate
 */
export function splitSecrets(value: string): string[] {
  const texts = value.trimStart().startsWith('[') ? textsOf(value) : undefined;
  return texts ?? splitList(value);
}

function textsOf(json: string): string[] | undefined {
  try {
    const list: unknown = JSON.parse(json);
    const isTexts = Array.isArray(list) && list.every((item) => typeof item === 'string' && item !== '');
    return isTexts ? (list as string[]) : undefined;
  } catch {
    return undefined;
  }
}

/** Drops the slash at the end of an address, so that a path can be appended to it. */
export function normaliseBaseUrl(value: unknown): unknown {
  return typeof value === 'string' ? value.trim().replace(/(?<!\/)\/+$/, '') : value;
}

/**
 * Answers whether a URL's host name means this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
 *
 * @param hostname as `URL.hostname` spells it: IPv6 in brackets
 */
export function isLoopbackHost(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d+){3}$/.test(hostname)
  );
}
