import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Env } from '../../config/env.js';
import { isLoopbackHost } from '../../config/urls.js';

export type ProxySettings = Pick<Env, 'HTTPS_PROXY' | 'NO_PROXY'>;

/**
 * The proxy for a URL, undefined if it is reached directly, as http and loopback hosts always are. NO_PROXY lists hosts and
 * their subdomains (also as `.example.com` or `*.example.com`), IP addresses and ranges, each with an optional port, or is
 * `*`. axios reads the environment itself, but neither knows subdomains nor the settings from files.
 */
export function proxyFor({ protocol, hostname, port }: URL, { HTTPS_PROXY, NO_PROXY }: ProxySettings): URL | undefined {
  if (HTTPS_PROXY === undefined || protocol !== 'https:' || isLoopbackHost(hostname)) return undefined;
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  return NO_PROXY.some((exception) => covers(exception.toLowerCase(), host, port || '443'))
    ? undefined
    : new URL(HTTPS_PROXY);
}

function covers(exception: string, host: string, port: string): boolean {
  if (exception === '*') return true;
  const [, bracketed, plain = bracketed ?? exception, ownPort = port] =
    /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(exception) ?? [];
  if (ownPort !== port) return false;
  if (isIP(host)) return plain === host || (ipaddr.isValidCIDR(plain) && isInRange(host, plain));
  const domain = plain.replace(/^\*?\./, '');
  return host === domain || host.endsWith(`.${domain}`);
}

function isInRange(address: string, range: string): boolean {
  const [parsed, [first, bits]] = [ipaddr.process(address), ipaddr.parseCIDR(range)];
  return parsed.kind() === first.kind() && parsed.match(first, bits);
}
