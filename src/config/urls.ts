/** A URL; undefined if the text is none. */
export function parseUrl(text: unknown): URL | undefined {
  return typeof text === 'string' && URL.canParse(text) ? new URL(text) : undefined;
}

/** True if the host name of a URL means this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3, RFC 4291 §2.5.3). */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|.*\.localhost|\[::1\]|127(\.\d+){3})$/.test(hostname);
}

/** True if the platform is on this machine, as the simulator is. */
export function isPlatformHere({ PLATFORM_BASE_URL: url }: { PLATFORM_BASE_URL?: unknown }): boolean {
  return isLoopbackHost(parseUrl(url)?.hostname ?? '');
}

/** True for a complete http or https address without user name, password, query or fragment. */
export function isPlainUrl(text: unknown): boolean {
  const url = parseUrl(text);
  return url !== undefined && isHttp(url) && !url.username && !url.password && !url.search && !url.hash;
}

/** True for https, and for http to a loopback host. */
export function isHttpsOrLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

const isHttp = ({ protocol }: URL) => protocol === 'http:' || protocol === 'https:';
