import { checkPublicUrl } from '../platform/upload/public-url.js';

/**
 * The address of a page of the recorder (spec, Audio recorder web routes). It contains the token: hand it out and keep
 * it nowhere. Blanks become %20, which every reader of a query understands; only forms read `+` as one.
 *
 * @param partnerDomain complete, such as `https://recorder.example`; its own path is kept
 * @param query parameters, without undefined ones
 */
export function recorderUrl(
  partnerDomain: string,
  route: 'recorder' | 'unuploaded-sessions',
  sessionToken: string,
  query: Record<string, string | undefined> = {},
): string {
  const pairs = Object.entries({ ...query, sessionToken }).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${encodeURIComponent(value)}`,
  );
  return `${partnerDomain.replace(/(?<!\/)\/+$/, '')}/${route}?${pairs.join('&')}`;
}

/**
 * Checks where the recorder may lead back to: a fully formed URL (spec, Audio recorder web routes) whose origin an
 * operator has listed. The operator vouches for the host, so it may also be in the EHR's own network.
 *
 * @param allowedOrigins REDIRECT_ALLOWED_ORIGINS; a path behind an origin is ignored
 * @returns its fault, without any part of the URL; undefined if it may be used
 */
export function redirectFault(text: string, allowedOrigins: readonly string[]): string | undefined {
  const fault = checkPublicUrl(text, { privateHostsAllowed: true });
  if (fault !== undefined) return fault;
  const { origin } = new URL(text);
  const isListed = allowedOrigins.some((allowed) => new URL(allowed).origin === origin);
  return isListed ? undefined : 'must have an origin that REDIRECT_ALLOWED_ORIGINS lists';
}
