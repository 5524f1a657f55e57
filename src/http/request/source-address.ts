import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/** An IPv4 address as a socket that takes both families shows it (RFC 4291 §2.5.5.2). */
const MAPPED = /^::ffff:(?=\d+\.)/i;

/**
 * Where a request comes from: what the trusted proxies say, else the address that connected. A proxy may pass on what
 * is no address at all, or one with a port; then it is the proxy's own, which is true at least.
 */
export function sourceAddress({ ip, socket }: Pick<FastifyRequest, 'ip' | 'socket'>): string {
  const address = isIP(ip) === 0 ? (socket.remoteAddress ?? '') : ip;
  return address.replace(MAPPED, '');
}
