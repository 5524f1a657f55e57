import type { Env } from '../../config/env.js';
import { isLoopbackHost } from '../../config/urls.js';

export type ProxySettings = Pick<Env, 'HTTPS_PROXY' | 'NO_PROXY'>;

/**
 * The proxy for a URL, undefined if it is reached directly, as http and loopback hosts always are. NO_PROXY lists hosts and
 * their subdomains (also as `.example.com` or `*.example.com`), each with an optional port, or is `*`. axios reads the
 * environment itself, but neither knows subdomains nor the settings from files.
 */
export function proxyFor({ protocol, hostname, port }: URL, { HTTPS_PROXY, NO_PROXY }: ProxySettings): URL | undefined {
  if (HTTPS_PROXY === undefined || protocol !== 'https:' || isLoopbackHost(hostname)) return undefined;
  const isDirect = NO_PROXY.some((exception) => {
    const [, domain, ownPort] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(exception.toLowerCase()) ?? [];
    if (ownPort !== undefined && ownPort !== (port || '443')) return false;
    return domain === '*' || hostname === domain || hostname.endsWith(`.${domain}`);
  });
  return isDirect ? undefined : new URL(HTTPS_PROXY);
}
