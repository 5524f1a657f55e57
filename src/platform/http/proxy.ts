import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { type Agent, request as httpsRequest } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { urlToHttpOptions } from 'node:url';
import ipaddr from 'ipaddr.js';
import type { Env } from '../../config/env.js';
import { isLoopbackHost } from '../../config/urls.js';

export type ProxySettings = Pick<Env, 'HTTPS_PROXY' | 'NO_PROXY'>;

/**
 * The proxy for a host, undefined if it is reached directly. NO_PROXY lists hosts and their subdomains (also as
 * `.example.com` or `*.example.com`), IP addresses and ranges, each with an optional port, or is `*`. Loopback hosts are
 * always reached directly.
 */
export function proxyFor(host: string, port: number, { HTTPS_PROXY: proxy, NO_PROXY: exceptions }: ProxySettings) {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (proxy === undefined || name === '::1' || isLoopbackHost(name)) return undefined;
  return exceptions.some((exception) => covers(exception.toLowerCase(), name, port)) ? undefined : new URL(proxy);
}

function covers(exception: string, host: string, port: number): boolean {
  if (exception === '*') return true;
  const [, bracketed, plain = bracketed ?? exception, ownPort] =
    /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(exception) ?? [];
  if (ownPort !== undefined && Number(ownPort) !== port) return false;
  if (isIP(host)) return plain === host || (ipaddr.isValidCIDR(plain) && isInRange(host, plain));
  const domain = plain.replace(/^\*?\./, '');
  return host === domain || host.endsWith(`.${domain}`);
}

function isInRange(address: string, range: string): boolean {
  const [parsed, [first, bits]] = [ipaddr.process(address), ipaddr.parseCIDR(range)];
  return parsed.kind() === first.kind() && parsed.match(first, bits);
}

/** Thrown if a proxy opens no tunnel. Then nothing was sent to the host behind it. */
export class ProxyRefusal extends Error {
  readonly code = 'PROXY_REFUSAL';

  constructor(readonly status: number) {
    super(`The proxy in HTTPS_PROXY answered ${status} to CONNECT.`);
  }
}

/**
 * Asks a proxy for a tunnel to a host (RFC 9110, 9.3.6).
 *
 * @param agent connects to a proxy over TLS
 * @param onOpen gets the connection to the proxy, which is now one to the host
 */
export function openTunnel(
  proxy: URL,
  authority: string,
  agent: Agent,
  onOpen: (error: Error | null, tunnel?: Socket) => void,
): ClientRequest {
  const { auth, ...address } = urlToHttpOptions(proxy);
  const credentials = auth ? `Basic ${Buffer.from(auth).toString('base64')}` : undefined;
  const isSecure = proxy.protocol === 'https:';
  const request = (isSecure ? httpsRequest : httpRequest)({
    ...address,
    method: 'CONNECT',
    path: authority,
    agent: isSecure ? agent : false,
    headers: { host: authority, ...(credentials && { 'proxy-authorization': credentials }) },
  });
  request.once('connect', ({ statusCode = 0 }: IncomingMessage, tunnel: Socket, head: Buffer) => {
    if (statusCode >= 200 && statusCode < 300) {
      if (head.length > 0) tunnel.unshift(head);
      return onOpen(null, tunnel);
    }
    tunnel.destroy();
    onOpen(new ProxyRefusal(statusCode));
  });
  request.once('error', onOpen);
  return request.end();
}
