import type { LookupFunction } from 'node:net';
import type { Env } from '../../config/env.js';
import { isLoopbackHost } from '../../config/urls.js';
import { checkPublicUrl, guardedLookup } from '../../platform/upload/public-url.js';

/** The settings that decide where events may be pushed to. */
type HostSettings = Pick<Env, 'SUBSCRIPTION_HOSTS_ALLOWED' | 'isPlatformHere'>;

/** True if the host of an endpoint may have a private address. Loopback is implied if the platform is on loopback. */
export function mayBePrivate(hostname: string, settings: HostSettings): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (settings.SUBSCRIPTION_HOSTS_ALLOWED.some((each) => each.toLowerCase() === bare)) return true;
  return settings.isPlatformHere && isLoopbackHost(hostname);
}

/**
 * Describes the fault of an endpoint's URL, without repeating any of it; undefined if events may be pushed there. Its
 * name may still resolve to a private address, so connect with `lookupFor`.
 */
export function checkEndpointUrl(text: string, settings: HostSettings): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const privateHostsAllowed = url !== undefined && mayBePrivate(url.hostname, settings);
  const fault = checkPublicUrl(text, { privateHostsAllowed });
  if (fault === 'must name a public host') return `${fault}, or one that SUBSCRIPTION_HOSTS_ALLOWED names`;
  if (fault !== undefined || url === undefined) return fault;
  const isPlain = url.protocol !== 'https:' && !isLoopbackHost(url.hostname);
  return isPlain ? 'must begin with https://' : undefined;
}

/** The `lookup` of connections to an endpoint, which refuses private addresses unless its host may have one. */
export const lookupFor = (isPrivate: boolean): LookupFunction => guardedLookup({ privateHostsAllowed: isPrivate });
