import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Env } from '../../config/env.js';

/** Whether addresses of one's own network may be handed in. */
type HostRule = Pick<Env, 'privateHostsAllowed'>;

/** Of one's own machine and network. Link-local (cloud metadata), multicast and the like are never an address to go to. */
const PRIVATE_RANGES = ['private', 'loopback', 'uniqueLocal', 'carrierGradeNat'];
/** Ends of names that never stand for a public host (RFC 6761, RFC 6762, RFC 8375, RFC 9476, ICANN on .internal). */
const LOCAL_NAMES = /(^|\.)(localhost|local|localdomain|internal|intranet|lan|home\.arpa|alt|test|invalid|onion)$/;
/** The only addresses of IPv6 that are given out for the public (RFC 4291, section 2.4). */
const GLOBAL_UNICAST: [ipaddr.IPv6, number] = [ipaddr.IPv6.parse('2000::'), 3];

/**
 * What is wrong with an address that someone outside hands in, without repeating any of it; undefined when it may be
 * used. A name that passes may still resolve to a private address: connect with the guarded lookup.
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

/** Whether a connection to an IP address may be made; one that wraps an IPv4 address is judged as what it is. */
export function isUsableAddress(text: string, rule: HostRule): boolean {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.process(text);
  const range = address.range();
  if (rule.privateHostsAllowed && PRIVATE_RANGES.includes(range)) return true;
  return range === 'unicast' && (!(address instanceof ipaddr.IPv6) || address.match(GLOBAL_UNICAST));
}

/** @param hostname as `URL` spells it: IPv4 in four decimals whatever was written, IPv6 in brackets */
function isUsableHost(hostname: string, rule: HostRule): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) !== 0) return isUsableAddress(host, rule);
  if (rule.privateHostsAllowed) return host !== '';
  return host.includes('.') && !LOCAL_NAMES.test(host);
}

export const ADDRESS_NOT_PUBLIC = 'ADDRESS_NOT_PUBLIC';

/** Asks a resolver for every address of a name. */
type ResolveAll = (
  hostname: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A `lookup` for connections that fails with `ADDRESS_NOT_PUBLIC` when any address of a name may not be used. The
 * connection uses its answer, so that a name which resolves differently the second time gains nothing. Node does not ask
 * it for a host that is an IP address: judge the URL first.
 */
export function guardedLookup(rule: HostRule, resolve: ResolveAll = systemLookup): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
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
