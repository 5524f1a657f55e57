import type { RecorderToken } from '../platform/clients/platform-client.js';
import type { RecorderVariant } from '../platform/contract/wire-types.js';
import { checkPublicUrl } from '../platform/upload/public-url.js';

/** What the recorder is opened with (spec, Audio recorder web routes). */
interface RecorderLaunch {
  variant: RecorderVariant;
  /** The client's userId on the platform. */
  contractId: string;
  sessionToken: RecorderToken;
  /** Where the button after a successful upload leads; a fully formed URL. */
  redirectUrl?: string | undefined;
}

/**
 * The address that opens the recorder in a provider's browser. It holds the token: hand it out and keep it nowhere.
 *
 * @param partnerDomain complete, such as `https://recorder.example`; its own path is kept
 */
export function recorderUrl(partnerDomain: string, launch: RecorderLaunch): string {
  const { variant, contractId, sessionToken, redirectUrl } = launch;
  return address(partnerDomain, 'recorder', {
    variant,
    contractId,
    sessionToken: sessionToken.reveal(),
    ...(redirectUrl !== undefined && { redirectUrl }),
  });
}

/** The address where a provider finishes interrupted uploads. It holds the token, as {@link recorderUrl} does. */
export function recoveryUrl(partnerDomain: string, sessionToken: RecorderToken): string {
  return address(partnerDomain, 'unuploaded-sessions', { sessionToken: sessionToken.reveal() });
}

/** Blanks become %20, which every reader of a query understands; only forms read `+` as one. */
function address(domain: string, route: string, query: Record<string, string>): string {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `${domain.replace(/(?<!\/)\/+$/, '')}/${route}?${pairs.join('&')}`;
}

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
