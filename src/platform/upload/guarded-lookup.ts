import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { type HostRule, isUsableAddress } from './public-url.js';

export const ADDRESS_NOT_PUBLIC = 'ADDRESS_NOT_PUBLIC';

/** Asks a resolver for every address of a name. */
export type ResolveAll = (
  hostname: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * A `lookup` for connections that refuses a name when any of its addresses may not be used. It is asked at the moment
 * of connecting and the connection uses its answer, so that a name which resolves differently the second time gains
 * nothing. Node does not ask it for a host that is an IP address: judge the URL first.
 *
 * @param resolve replaced in tests
 * @returns a function that fails with the code `ADDRESS_NOT_PUBLIC`
 */
export function guardedLookup(rule: HostRule, resolve: ResolveAll = systemLookup): LookupFunction {
  return (hostname, options, done) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error) return done(error, '');
      const [first] = addresses;
      if (!first || !addresses.every(({ address }) => isUsableAddress(address, rule))) return done(notPublic(), '');
      if (options.all) done(null, addresses);
      else done(null, first.address, first.family);
    });
  };
}

function notPublic(): NodeJS.ErrnoException {
  return Object.assign(new Error('The host has an address that is not public.'), { code: ADDRESS_NOT_PUBLIC });
}
