import ipaddr from 'ipaddr.js';

/** Failures from one source, or with one key's prefix, after which more are refused until their time is over. */
export const MOST_FAILURES = 20;

/** Seconds for which failures are counted together, and for which those that are too many are refused. */
export const LOCKOUT_SECONDS = 600;

/** Failures that are answered at once: a key that was pasted wrongly. */
const FREE_FAILURES = 5;

/** Milliseconds for which the next one waits; twice as long for each that follows, up to the second number. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;

/** Milliseconds for which the answer to a failure waits. @param failures with this one */
export function pauseMs(failures: number): number {
  if (failures <= FREE_FAILURES) return 0;
  return Math.min(FIRST_PAUSE_MS * 2 ** (failures - FREE_FAILURES - 1), LONGEST_PAUSE_MS);
}

/** Bits of an IPv6 address that are one customer's: the rest is theirs to choose (RFC 6177 §2). */
const IPV6_NETWORK_BITS = 64;

/** What failures are counted by: the IPv4 address, or the network of an IPv6 address. */
export function sourceOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return 'unknown';
  const address = ipaddr.process(ip);
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toNormalizedString()}/${IPV6_NETWORK_BITS}`)}/${IPV6_NETWORK_BITS}`;
}
