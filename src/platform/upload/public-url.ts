import { lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Env } from '../../config/env.js';

/** The setting that accepts URLs of the private network. */
type HostRule = Pick<Env, 'privateHostsAllowed'>;

/** Ranges of this machine and its network. Others, such as link-local (cloud metadata) and multicast, are never accepted. */
const PRIVATE_RANGES = ['private', 'loopback', 'uniqueLocal', 'carrierGradeNat'];
/** Suffixes of names without a public host (RFC 6761, RFC 6762, RFC 8375, RFC 9476, ICANN on .internal). */
const LOCAL_NAMES = /(^|\.)(localhost|local|localdomain|internal|intranet|lan|home\.arpa|alt|test|invalid|onion)$/;
/** The public addresses of IPv6 (RFC 4291, section 2.4). */
const GLOBAL_UNICAST: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

/**
 * Describes the fault of a URL from outside, without repeating any of it; undefined if it is acceptable. Its name may
 * still resolve to a private address, so connect with the guarded lookup.
 */
export function checkPublicUrl(text: string, rule: HostRule): string | undefined {
  if (!URL.canParse(text) || /[\p{Cc}\p{Cs}\s\\]/u.test(text))
    return 'must be a complete address such as https://host/path';
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && rule.privateHostsAllowed))
    return 'must begin with https://';
  if (url.username !== '' || url.password !== '') return 'must hold no user name or password';
  return isUsableHost(url.hostname, rule) ? undefined : 'must name a public host';
}

/** True if a connection to an IP address is allowed. An IPv6 address that wraps an IPv4 one is checked as the latter. */
export function isUsableAddress(text: string, rule: HostRule): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  const range = address.range();
  if (rule.privateHostsAllowed && PRIVATE_RANGES.includes(range)) return true;
  return range === 'unicast' && (!(address instanceof ipaddr.IPv6) || address.match(GLOBAL_UNICAST));
}

/** @param hostname as `URL` normalises it: IPv4 as four decimals, IPv6 in brackets */
function isUsableHost(hostname: string, rule: HostRule): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) !== 0) return isUsableAddress(host, rule);
  if (rule.privateHostsAllowed) return host !== '';
  return host.includes('.') && !LOCAL_NAMES.test(host);
}

export const ADDRESS_NOT_PUBLIC = 'ADDRESS_NOT_PUBLIC';

/**
 * A `lookup` for connections that fails with `ADDRESS_NOT_PUBLIC` if any address of a name is not allowed. The connection
 * uses its answer, so that a second, different resolution has no effect. Node does not call it for IP addresses, so check
 * the URL first.
 */
export function guardedLookup(rule: HostRule): LookupFunction {
  return (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const [first] = addresses;
      if (!first || !addresses.every(({ address }) => isUsableAddress(address, rule))) {
        const refusal = new Error('The host has an address that is not public.');
        return done(Object.assign(refusal, { code: ADDRESS_NOT_PUBLIC }), '');
      }
      if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}
