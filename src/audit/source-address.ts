import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';
import ipaddr from 'ipaddr.js';

/** An IPv4 address as a socket that takes both families shows it (RFC 4291 §2.5.5.2). */
const MAPPED = /^::ffff:(?=\d+\.)/i;

/**
 * The source of a request: the address from the trusted proxies, or else the one that connected. If a proxy passes on
 * something other than a plain IP address, such as an address with a port, the proxy's own address is used.
 */
export function sourceAddress({ ip, socket }: Pick<FastifyRequest, 'ip' | 'socket'>): string {
  const address = isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip;
  return address.replace(MAPPED, '');
}

/** Bits of an IPv6 address that name one customer, who chooses the others (RFC 6177 §2). */
const IPV6_NETWORK_BITS = 64;

/** The source of requests without a key, as they are counted: an IPv4 address, or the network of an IPv6 address. */
export function sourceNetwork(request: Pick<FastifyRequest, 'ip' | 'socket'>): string {
  const address = sourceAddress(request);
  if (isIP(address) !== 6) return address || 'unknown';
  const range = `${ipaddr.parse(address).toNormalizedString()}/${IPV6_NETWORK_BITS}`;
  return `${ipaddr.IPv6.networkAddressFromCIDR(range)}/${IPV6_NETWORK_BITS}`;
}
