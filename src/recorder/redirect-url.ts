import { checkPublicUrl } from '../platform/upload/public-url.js';

/**
 * Judges where the recorder may lead back to: a fully formed URL (spec, Audio recorder web routes) whose origin an
 * operator has listed. The list is that operator's word for the host, so it may also be one of the EHR's own network.
 *
 * @param allowedOrigins REDIRECT_ALLOWED_ORIGINS; a path behind an origin is not looked at
 * @returns what is wrong with it, in words that hold nothing of it; undefined when it may be used
 */
export function redirectFault(text: string, allowedOrigins: readonly string[]): string | undefined {
  const fault = checkPublicUrl(text, { privateHostsAllowed: true });
  if (fault !== undefined) return fault;
  const { origin } = new URL(text);
  const isListed = allowedOrigins.some((allowed) => new URL(allowed).origin === origin);
  return isListed ? undefined : 'must have an origin that REDIRECT_ALLOWED_ORIGINS lists';
}
